import type { MouseEvent } from 'react'

/** What answers a click itself, so that the row around it does not. */
const OWN_CLICK = 'a, button, input, select, textarea, label, summary, [role="menu"], [role="dialog"]'

/**
 * Opens the row that is clicked, by the first link or button of its cell `data-opens`; the keys of the mouse go on to it. A
 * click on something that answers itself, or at the end of a selection of text, stays what it is. Keyboard and screen
 * reader have the link.
 */
export function openRow(event: MouseEvent): void {
  const { target, button, ctrlKey, metaKey, shiftKey, altKey } = event
  // What a portal of React draws elsewhere, as a menu, comes by here too.
  if (!(target instanceof Element) || !event.currentTarget.contains(target)) return
  if (button !== 0 || event.defaultPrevented || target.closest(OWN_CLICK)) return
  if (getSelection()?.type === 'Range') return
  const opener = target.closest('tr')?.querySelector('[data-opens] a[href], [data-opens] button')
  opener?.dispatchEvent(
    new MouseEvent('click', { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey, altKey }),
  )
}

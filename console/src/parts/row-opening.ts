import type { MouseEvent } from 'react'

/** Elements that answer a click themselves, so that the row around them does not. */
const OWN_CLICK = 'a, button, input, select, textarea, label, summary, [role="menu"], [role="dialog"]'

/**
 * Opens the row that is clicked, by the first link or button of its cell `data-opens`; the keys of the mouse go on to it. A
 * click on something that answers itself, or at the end of a selection of text, stays what it is. Keyboard and screen
 * reader have the link.
 */
export function openRow(event: MouseEvent): void {
  const { target, button, ctrlKey, metaKey, shiftKey, altKey } = event
  // Clicks in a portal of React that draws elsewhere, as a menu does, come by here too.
  if (!(target instanceof Element) || !event.currentTarget.contains(target)) return
  if (button !== 0 || event.defaultPrevented || target.closest(OWN_CLICK)) return
  if (getSelection()?.type === 'Range') return
  const opener = target.closest('tr')?.querySelector('[data-opens] a[href], [data-opens] button')
  opener?.dispatchEvent(
    new MouseEvent('click', { bubbles: true, cancelable: true, ctrlKey, metaKey, shiftKey, altKey }),
  )
}

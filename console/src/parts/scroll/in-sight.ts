import { type RefObject, useEffect, useRef } from 'react'

/**
 * Scrolls a strip so far that its open item, the one of `selector`, is in sight: at first, when another one is open, when the
 * strip or the item has another width, and when the page has another direction. The page stays where it is.
 */
export function useInSight(open: string | null | undefined, selector: string): RefObject<HTMLDivElement | null> {
  const frame = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another open item may be out of sight
  useEffect(() => {
    const item = frame.current?.querySelector(selector)
    const strip = item?.parentElement
    if (!item || !strip) return
    const show = () => {
      const [own, around] = [item.getBoundingClientRect(), strip.getBoundingClientRect()]
      if (own.left < around.left) strip.scrollBy({ left: own.left - around.left })
      if (own.right > around.right) strip.scrollBy({ left: own.right - around.right })
    }
    let isLaidOut = false
    // A strip that is laid out anew is scrolled from its start; where an item is opened, as little as possible moves.
    const place = () => {
      if (isLaidOut) strip.scrollLeft = 0
      isLaidOut = true
      show()
    }
    // Tells of the present widths too, after the router has scrolled the strip to where one of another screen was.
    const sizes = new ResizeObserver(place)
    sizes.observe(strip)
    sizes.observe(item)
    const directions = new MutationObserver(place)
    directions.observe(document.documentElement, { attributeFilter: ['dir'] })
    return () => {
      sizes.disconnect()
      directions.disconnect()
    }
  }, [open, selector])
  return frame
}

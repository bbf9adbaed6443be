import { type RefObject, useEffect, useRef } from 'react'

/** Scrolls a strip so far that its open item, the one of `selector`, is in sight; again when another one is open. */
export function useInSight(open: string | null | undefined, selector: string): RefObject<HTMLDivElement | null> {
  const frame = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another open item may be out of sight
  useEffect(() => {
    const item = frame.current?.querySelector(selector)
    const strip = item?.parentElement
    if (!item || !strip) return
    const [own, around] = [item.getBoundingClientRect(), strip.getBoundingClientRect()]
    if (own.left < around.left) strip.scrollBy({ left: own.left - around.left })
    if (own.right > around.right) strip.scrollBy({ left: own.right - around.right })
  }, [open, selector])
  return frame
}

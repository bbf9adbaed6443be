import { type RefCallback, useCallback } from 'react'

/** How far a region is scrolled and how much it holds, px. */
export interface Extent {
  /** Below zero in a region from right to left. */
  scrollLeft: number
  scrollTop: number
  scrollWidth: number
  scrollHeight: number
  clientWidth: number
  clientHeight: number
}

/** Sides of a region. */
export type Side = 'left' | 'right' | 'top' | 'bottom'

/** Less is a rounding, px. */
const ROOM_PX = 2

/** The sides of a region behind which there is more. Pure. */
export function listHiddenSides(extent: Extent, isRightToLeft: boolean): ReadonlySet<Side> {
  const across = extent.scrollWidth - extent.clientWidth
  const left = isRightToLeft ? across + extent.scrollLeft : extent.scrollLeft
  const down = extent.scrollHeight - extent.clientHeight
  const hidden = { left, right: across - left, top: extent.scrollTop, bottom: down - extent.scrollTop }
  const sides = Object.keys(hidden) as Side[]
  return new Set(sides.filter((side) => hidden[side] >= ROOM_PX))
}

/**
 * Marks the parent of a region that scrolls with `data-left`, `data-right`, `data-top` and `data-bottom` while there is more
 * behind that side. They are written at the element: nothing is drawn again while somebody scrolls.
 */
export function useEdges<Region extends HTMLElement>(): RefCallback<Region> {
  return useCallback((region: Region | null) => {
    const frame = region?.parentElement
    if (!region || !frame) return
    const mark = () => {
      const hidden = listHiddenSides(region, getComputedStyle(region).direction === 'rtl')
      for (const side of ['left', 'right', 'top', 'bottom'] as const)
        frame.toggleAttribute(`data-${side}`, hidden.has(side))
    }
    const observer = new ResizeObserver(mark)
    observer.observe(region)
    for (const child of region.children) observer.observe(child)
    region.addEventListener('scroll', mark, { passive: true })
    return () => {
      observer.disconnect()
      region.removeEventListener('scroll', mark)
    }
  }, [])
}

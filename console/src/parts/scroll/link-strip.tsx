import type { ReactNode } from 'react'
import { useEdges } from './edges.ts'
import { useInSight } from './in-sight.ts'

/** The links between the screens of one area, in one line like tabs; the one of the present screen is brought into sight. */
export function LinkStrip({
  label,
  current,
  className,
  children,
}: {
  /** Accessible name of the navigation. */
  label: string
  /** The present screen. */
  current: string | undefined
  className: string
  children: ReactNode
}) {
  const edges = useEdges<HTMLElement>()
  const frame = useInSight(current, '[aria-current]')
  return (
    <div ref={frame} className="scroll-frame">
      <nav ref={edges} className={className} aria-label={label}>
        {children}
      </nav>
    </div>
  )
}

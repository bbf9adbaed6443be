import type { ReactNode } from 'react'
import { useEdges } from './edges.ts'

/** A region that scrolls where it has no room, and shows at its sides where there is more. */
export function Scroll({
  label,
  className = '',
  children,
}: {
  /** Accessible name of the region. */
  label: string
  className?: string
  /** One element. */
  children: ReactNode
}) {
  const edges = useEdges<HTMLElement>()
  return (
    <div className="scroll-frame">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by the keyboard (axe scrollable-region-focusable) */}
      <section ref={edges} className={`scroll ${className}`} tabIndex={0} aria-label={label}>
        {children}
      </section>
    </div>
  )
}

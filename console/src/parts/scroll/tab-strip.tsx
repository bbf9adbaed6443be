import { Tabs } from '@mantine/core'
import type { ReactNode } from 'react'
import { useEdges } from './edges.ts'
import { useInSight } from './in-sight.ts'

/** The tabs of a screen in one line, which scrolls where it has no room; the open one is brought into sight. */
export function TabStrip({ open, children }: { open: string | null; children: ReactNode }) {
  const edges = useEdges<HTMLDivElement>()
  const frame = useInSight(open, '[role="tab"][aria-selected="true"]')
  return (
    <div ref={frame} className="scroll-frame">
      <Tabs.List ref={edges} className="tabs">
        {children}
      </Tabs.List>
    </div>
  )
}

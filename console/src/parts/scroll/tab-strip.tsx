import { Tabs } from '@mantine/core'
import { type ReactNode, useEffect, useRef } from 'react'
import { useEdges } from './edges.ts'

/** The tabs of a screen in one line, which scrolls where it has no room; the open one is brought into sight. */
export function TabStrip({ open, children }: { open: string | null; children: ReactNode }) {
  const edges = useEdges<HTMLDivElement>()
  const frame = useRef<HTMLDivElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another open tab may be out of sight
  useEffect(() => {
    const tab = frame.current?.querySelector('[role="tab"][aria-selected="true"]')
    const strip = tab?.parentElement
    if (!tab || !strip) return
    const [own, around] = [tab.getBoundingClientRect(), strip.getBoundingClientRect()]
    if (own.left < around.left) strip.scrollBy({ left: own.left - around.left })
    if (own.right > around.right) strip.scrollBy({ left: own.right - around.right })
  }, [open])
  return (
    <div ref={frame} className="scroll-frame">
      <Tabs.List ref={edges} className="tabs">
        {children}
      </Tabs.List>
    </div>
  )
}

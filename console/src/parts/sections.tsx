import { Tabs } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useAccess } from '../frame/session.tsx'
import { TabStrip } from './scroll/tab-strip.tsx'

/** One section of a detail screen. */
interface Section {
  name: string
  label: string
  content: ReactNode
  /** Permission without which the section is not shown. */
  permission?: string
}

/** A section that needs a permission. `heading`: its name in the URL, and its label. */
export function guardSection(
  permission: string,
  heading: readonly [name: string, label: string],
  content: ReactNode,
): Section {
  const [name, label] = heading
  return { name, label, content, permission }
}

/** The sections of a detail screen as tabs; the open one is in the URL. */
export function Sections({ sections }: { sections: readonly (Section | false)[] }) {
  const { tab } = useSearch({ strict: false }) as { tab?: string }
  const navigate = useNavigate()
  const { may } = useAccess()
  const shown = sections
    .filter((section) => section !== false)
    .filter(({ permission }) => permission === undefined || may(permission))
  const open = shown.find(({ name }) => name === tab) ?? shown[0]
  const choose = (name: string | null) => {
    const search = name === null || name === shown[0]?.name ? {} : { tab: name }
    void navigate({ to: '.', search, replace: true, resetScroll: false })
  }
  return (
    <Tabs value={open?.name ?? null} onChange={choose} keepMounted={false}>
      <TabStrip open={open?.name ?? null}>
        {shown.map(({ name, label }) => (
          <Tabs.Tab key={name} value={name}>
            {label}
          </Tabs.Tab>
        ))}
      </TabStrip>
      {shown.map(({ name, content }) => (
        <Tabs.Panel key={name} value={name} pt="md">
          {name === open?.name && content}
        </Tabs.Panel>
      ))}
    </Tabs>
  )
}

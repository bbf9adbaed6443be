import { Breadcrumbs, Group, Stack, Text, Title } from '@mantine/core'
import { type ReactNode, useEffect } from 'react'
import { settings } from '../frame/settings.ts'
import { MissingCells } from './missing-cells.tsx'
import { TextLink } from './text-link.tsx'

interface PageProps {
  title: string
  /** The screen above it. */
  parent?: { label: string; to: string }
  lead?: ReactNode
  actions?: ReactNode
  children: ReactNode
}

/** A screen: its heading, its actions, its content. */
export function Page({ title, parent, lead, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · ${settings.service}`
  }, [title])
  return (
    <Stack gap="lg" className="page">
      <Group justify="space-between" align="flex-start" className="page-head">
        <Stack gap={4} miw={0} className="page-title grow">
          {parent && (
            <Breadcrumbs>
              <TextLink to={parent.to} size="sm">
                {parent.label}
              </TextLink>
            </Breadcrumbs>
          )}
          <Title order={1} className="wrap">
            {title}
          </Title>
          {lead && (
            <Text c="dimmed" size="sm" component="div">
              {lead}
            </Text>
          )}
        </Stack>
        {actions && (
          <Group gap="xs" className="page-actions">
            {actions}
          </Group>
        )}
      </Group>
      <MissingCells />
      {children}
    </Stack>
  )
}

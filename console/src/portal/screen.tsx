import { Anchor, Group, Stack, Text, Title } from '@mantine/core'
import type { ReactNode } from 'react'
import { Icon } from '../frame/icons.tsx'

/** A screen of the portal: the way back, its heading, its actions, its content. */
export function Screen({
  title,
  lead,
  back,
  actions,
  children,
}: {
  title: string
  lead?: ReactNode
  back?: { label: string; href: string }
  actions?: ReactNode
  children: ReactNode
}) {
  return (
    <Stack gap="lg">
      <Stack gap={4}>
        {back && (
          <Anchor href={back.href} size="sm" w="fit-content">
            <Group gap={4}>
              <span aria-hidden="true">←</span>
              {back.label}
            </Group>
          </Anchor>
        )}
        <Group justify="space-between" align="flex-start" gap="sm">
          <Stack gap={4} miw={0}>
            <Title order={1} className="wrap">
              {title}
            </Title>
            {lead && (
              <Text size="sm" c="dimmed" component="div">
                {lead}
              </Text>
            )}
          </Stack>
          {actions && <Group gap="xs">{actions}</Group>}
        </Group>
      </Stack>
      {children}
    </Stack>
  )
}

/** Says that a list is empty, and what to do about it. */
export function Nothing({ title, text, children }: { title: string; text?: string; children?: ReactNode }) {
  return (
    <Stack align="center" gap="xs" py="md">
      <Icon name="webhooks" size={28} />
      <Text fw={600}>{title}</Text>
      {text && (
        <Text size="sm" c="dimmed" maw={420} ta="center">
          {text}
        </Text>
      )}
      {children}
    </Stack>
  )
}

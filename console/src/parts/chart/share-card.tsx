import { Card, Group, Progress, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { CardHeading, EmptyCard } from '../card.tsx'
import { numberFormat } from '../words/formats.ts'

/** A part of a whole. */
export interface ShareOf {
  key: string
  name: string
  /** Text in place of the name. Default: the name. */
  label?: ReactNode
  count: number
  /** Text beside the number. */
  note?: string | undefined
  /** A colour of the theme. */
  color: string
}

/** Parts of a whole: each has its name, its number, and its share as a bar. */
export function ShareCard({
  title,
  summary,
  shares,
  total,
  empty,
}: {
  title: string
  summary: string
  shares: readonly ShareOf[]
  total: number
  /** Text that stands where there is nothing. */
  empty: string
}) {
  const { i18n } = useTranslation()
  const number = numberFormat(i18n.language)
  return (
    <Card withBorder>
      <Stack gap="sm">
        <CardHeading title={title} summary={summary} />
        {shares.map(({ key, name, label, count, note, color }) => (
          <div key={key}>
            <Group justify="space-between" gap="xs" wrap="nowrap">
              <Text size="sm" truncate component="div">
                {label ?? name}
              </Text>
              <Text size="sm" c="dimmed" className="nowrap">
                {note === undefined ? number.format(count) : `${number.format(count)} · ${note}`}
              </Text>
            </Group>
            <Progress value={total === 0 ? 0 : (count / total) * 100} color={color} size="sm" aria-label={name} />
          </div>
        ))}
        {shares.length === 0 && <EmptyCard text={empty} />}
      </Stack>
    </Card>
  )
}

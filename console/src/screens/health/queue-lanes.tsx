import { Card, Group, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { useAccess } from '../../frame/session.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { CardHeading } from '../../parts/card.tsx'
import { Freshness, readOf } from '../../parts/freshness.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { type Column, RowTable } from '../../parts/row-table.tsx'
import { Time } from '../../parts/time.tsx'
import { numberFormat } from '../../parts/words/formats.ts'
import { formatSpan } from '../../parts/words/span.ts'
import { queueQuery } from './queue-query.ts'

/** Counts end here: it stands for that many or more. */
const COUNT_LIMIT = 10_000

type LaneName = 'unrouted' | keyof Schemas['QueueLanes'] | 'retry'

interface LaneRow {
  document_id: LaneName
  waiting: number
  in_flight: number | null
  /** Age of the longest due, seconds; null where nothing is due. */
  oldest_s: number | null
  next_at: string | null
}

/** The rows of the table, in the order in which a delivery passes them. Pure. */
function listLanes({ unrouted, oldest_unrouted_s, lanes, retry }: Schemas['QueueDepth']): LaneRow[] {
  const ofLane = (name: keyof Schemas['QueueLanes']): LaneRow => {
    const { waiting, in_flight, oldest_due_s } = lanes[name]
    return { document_id: name, waiting, in_flight, oldest_s: waiting === 0 ? null : oldest_due_s, next_at: null }
  }
  return [
    {
      ...{ document_id: 'unrouted', waiting: unrouted, in_flight: null, next_at: null },
      oldest_s: unrouted === 0 ? null : oldest_unrouted_s,
    },
    ofLane('fast'),
    ofLane('slow'),
    ofLane('throttled'),
    {
      ...{ document_id: 'retry', waiting: retry.waiting, in_flight: null, oldest_s: null },
      next_at: retry.next_attempt_at,
    },
  ]
}

/** A lane by its name, and what is in it. */
function Lane({ name }: { name: LaneName }) {
  const { t } = useTranslation()
  return (
    <>
      {t(`queue.lane.${name}`)}
      <Text size="xs" c="dimmed">
        {t(`queue.what.${name}`)}
      </Text>
    </>
  )
}

/** Deliveries that wait for their POST, by lane. */
export function QueueLanes({ isPaused }: { isPaused: boolean }) {
  const { t, i18n } = useTranslation()
  const { may } = useAccess()
  const depth = useQuery({
    ...queueQuery,
    ...(isPaused && { refetchInterval: false }),
    enabled: may('webhook:dashboard-queue'),
  })
  if (!may('webhook:dashboard-queue')) return null
  const number = numberFormat(i18n.language)
  const countOf = (count: number) => `${number.format(count)}${count >= COUNT_LIMIT ? '+' : ''}`
  const columns: Column<LaneRow>[] = [
    { label: t('queue.lane'), cell: (row) => <Lane name={row.document_id} /> },
    { label: t('queue.waiting'), isNumber: true, cell: (row) => countOf(row.waiting) },
    {
      label: t('queue.in-flight'),
      isNumber: true,
      cell: (row) => (row.in_flight === null ? '–' : countOf(row.in_flight)),
    },
    {
      label: t('queue.longest'),
      cell: (row) => {
        if (row.next_at !== null) return <Time at={row.next_at} />
        return row.oldest_s === null ? '–' : formatSpan(row.oldest_s * 1_000, i18n.language)
      },
    },
  ]
  return (
    <Card withBorder>
      <Stack gap="sm">
        <Group justify="space-between" align="flex-start" wrap="nowrap">
          <CardHeading title={t('queue.title')} summary={t('queue.lead')} />
          <Group gap="xs" wrap="nowrap">
            <Freshness {...readOf(depth)} />
            <ApiCall operation="webhook.webhookDashboardQueue" method="GET" path="/api/v3/webhook/dashboard/queue" />
          </Group>
        </Group>
        <Loaded query={depth} height={200}>
          {({ data }) => (
            <RowTable caption={t('queue.title')} columns={columns} rows={listLanes(data)} isBusy={depth.isFetching} />
          )}
        </Loaded>
      </Stack>
    </Card>
  )
}

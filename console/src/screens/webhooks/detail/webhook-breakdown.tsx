import { Group, SimpleGrid, Stack, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { RANGES } from '../../../parts/chart/format.ts'
import { RangeControl } from '../../../parts/chart/range-control.tsx'
import { ShareCard } from '../../../parts/chart/share-card.tsx'
import { Loaded } from '../../../parts/loaded.tsx'
import { TextLink } from '../../../parts/text-link.tsx'
import { faultName } from '../../../parts/words/fault-name.ts'

/** Interval between reads, ms. */
const REFRESH_MS = 10_000

/** Answers that are shown; there are 15 classes. */
const ANSWERS_SHOWN = 8

/** Event types that are shown. */
const EVENTS_SHOWN = 10

/** The attempts of a webhook in a range, by answer and by event type. */
export function WebhookBreakdown({ webhook }: { webhook: string }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const search = useSearch({ from: '/webhooks/$id' })
  const navigate = useNavigate()
  const range = RANGES.find((range) => range === search.range) ?? '24h'
  const breakdown = useQuery({
    queryKey: ['dashboard', 'breakdown', webhook, range],
    queryFn: ({ signal }) => api.webhook.webhookDashboardBreakdown({ path: { id: webhook }, query: { range }, signal }),
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
    enabled: may('webhook:dashboard-breakdown'),
  })
  if (!may('webhook:dashboard-breakdown')) return null
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={2} size="h5">
          {t('breakdown.title')}
        </Title>
        <RangeControl
          label={t('breakdown.range')}
          range={range}
          onChoose={(next) =>
            void navigate({ to: '/webhooks/$id', params: { id: webhook }, search: { range: next }, replace: true })
          }
        />
      </Group>
      <Loaded query={breakdown} height={200}>
        {({ data }) => <Shares breakdown={data} />}
      </Loaded>
    </Stack>
  )
}

function Shares({ breakdown }: { breakdown: Schemas['WebhookBreakdown'] }) {
  const { t } = useTranslation()
  const { answers, events, attempts, failed, event_types: eventTypes } = breakdown
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <ShareCard
        title={t('breakdown.answers')}
        summary={t('breakdown.answers-summary', { count: attempts, failed })}
        shares={answers.slice(0, ANSWERS_SHOWN).map(({ answer, attempts: count }) => ({
          key: answer,
          name: answer === 'http_2xx' ? t('breakdown.delivered') : faultName(answer, t),
          count,
          color: answer === 'http_2xx' ? 'teal' : 'red',
        }))}
        total={attempts}
        empty={t('chart.empty')}
      />
      <ShareCard
        title={t('breakdown.events')}
        summary={t('breakdown.events-summary', { count: eventTypes })}
        shares={events.slice(0, EVENTS_SHOWN).map(({ event, attempts: count, failed: failures }) => ({
          key: event,
          name: event,
          label: (
            <TextLink to="/catalogue" search={{ q: event }} size="sm">
              {event}
            </TextLink>
          ),
          count,
          note: failures > 0 ? t('breakdown.failed', { count: failures }) : undefined,
          color: 'ink',
        }))}
        total={attempts}
        empty={t('chart.empty')}
      />
    </SimpleGrid>
  )
}

import { SimpleGrid, Title } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { CHART_CARD_HEIGHT } from '../../parts/chart/chart-card.tsx'
import type { Range } from '../../parts/chart/format.ts'
import { useBucketNames } from '../../parts/chart/use-bucket-names.ts'
import { Loaded } from '../../parts/loaded.tsx'
import { numberFormat } from '../../parts/words/formats.ts'
import { Connections } from './connection-chart.tsx'
import { CountChart } from './count-chart.tsx'

/** Interval between reads of the sums, ms: they are counted every half a minute. */
const REFRESH_MS = 30_000

/** The charts of identity and of realtime: sign-ins and messages over the range. */
export function ActivityCharts({ range }: { range: Range }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const hasSignIns = may('user:dashboard-sign-ins')
  const hasMessages = may('realtime:dashboard-messages')
  const hasConnections = may('realtime:dashboard-connections')
  if (!hasSignIns && !hasMessages && !hasConnections) return null
  return (
    <>
      <Title order={2} size="h4">
        {t('chart.activity')}
      </Title>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        {hasSignIns && <SignIns range={range} />}
        {hasMessages && <Messages range={range} />}
      </SimpleGrid>
      {hasConnections && <Connections range={range} />}
    </>
  )
}

/** The sums of a range, read again as often as they are counted; those of the range before are shown until they come. */
function useSeries<Answer>(name: string, range: Range, load: (signal: AbortSignal) => Promise<Answer>) {
  return useQuery({
    queryKey: ['dashboard', name, range],
    queryFn: ({ signal }) => load(signal),
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
}

function SignIns({ range }: { range: Range }) {
  const { t, i18n } = useTranslation()
  const nameOf = useBucketNames(range)
  const series = useSeries('sign-ins', range, (signal) =>
    api.identity.userDashboardSignIns({ query: { range }, signal }),
  )
  const number = numberFormat(i18n.language)
  return (
    <Loaded query={series} height={CHART_CARD_HEIGHT}>
      {({ data }) => {
        const ways = data.ways.map(({ way, sign_ins: count }) => `${t(`sign-in.way.${way}`)} ${number.format(count)}`)
        const counts = { succeeded: number.format(data.succeeded), refused: number.format(data.refused) }
        const summary = t('chart.sign-ins-summary', counts)
        return (
          <CountChart
            title={t('chart.sign-ins')}
            summary={ways.length === 0 ? summary : `${summary} · ${ways.join(', ')}`}
            empty={t('chart.no-sign-in')}
            names={[
              { key: 'succeeded', name: t('chart.signed-in'), color: 'var(--chart-good)' },
              { key: 'refused', name: t('chart.refused'), color: 'var(--chart-bad)' },
            ]}
            points={data.buckets.map(({ at, succeeded, refused }) => ({ label: nameOf(at), succeeded, refused }))}
          />
        )
      }}
    </Loaded>
  )
}

function Messages({ range }: { range: Range }) {
  const { t, i18n } = useTranslation()
  const nameOf = useBucketNames(range)
  const series = useSeries('messages', range, (signal) =>
    api.realtime.realtimeDashboardMessages({ query: { range }, signal }),
  )
  const number = numberFormat(i18n.language)
  return (
    <Loaded query={series} height={CHART_CARD_HEIGHT}>
      {({ data }) => {
        const lost = data.rejected + data.exhausted
        return (
          <CountChart
            title={t('chart.messages')}
            summary={t('chart.messages-summary', { sent: number.format(data.published), lost: number.format(lost) })}
            empty={t('chart.no-message')}
            names={[
              { key: 'published', name: t('chart.published'), color: 'var(--chart-good)' },
              { key: 'lost', name: t('chart.unpublished'), color: 'var(--chart-bad)' },
            ]}
            points={data.buckets.map(({ at, published, rejected, exhausted }) => ({
              label: nameOf(at),
              published,
              lost: rejected + exhausted,
            }))}
          />
        )
      }}
    </Loaded>
  )
}

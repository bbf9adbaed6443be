import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { lazy } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { CHART_CARD_HEIGHT, ChartCard } from '../../parts/chart/chart-card.tsx'
import type { Range } from '../../parts/chart/format.ts'
import { useBucketNames } from '../../parts/chart/use-bucket-names.ts'
import { Loaded } from '../../parts/loaded.tsx'
import { numberFormat } from '../../parts/words/formats.ts'
import { Legend } from './count-chart.tsx'

/** How often the readings are read again, ms: there is one a minute. */
const REFRESH_MS = 30_000

const Lines = lazy(() => import('../../parts/chart/charts.tsx').then((charts) => ({ default: charts.Lines })))

/** Open realtime connections over the range: the mean and the highest of the readings. */
export function Connections({ range }: { range: Range }) {
  const { t, i18n } = useTranslation()
  const nameOf = useBucketNames(range)
  const series = useQuery({
    queryKey: ['dashboard', 'connections', range],
    queryFn: ({ signal }) => api.realtime.realtimeDashboardConnections({ query: { range }, signal }),
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  })
  const number = numberFormat(i18n.language, { maximumFractionDigits: 1 })
  const format = (value: number | null) => (value === null ? '–' : number.format(value))
  const names = [
    { key: 'peak', name: t('chart.peak'), color: 'var(--chart-line)' },
    { key: 'average', name: t('chart.average'), color: 'var(--chart-line-2)' },
  ]
  return (
    <Loaded query={series} height={CHART_CARD_HEIGHT}>
      {({ data: { average, peak, buckets } }) => {
        const points = buckets.map((bucket) => ({
          label: nameOf(bucket.at),
          peak: bucket.peak,
          average: bucket.average,
        }))
        const summary =
          peak === null
            ? t('chart.no-reading')
            : t('chart.connections-summary', { peak: format(peak), average: format(average) })
        return (
          <ChartCard
            title={t('chart.connections')}
            summary={summary}
            columns={[t('chart.time'), ...names.map(({ name }) => name)]}
            rows={points.map((point) => [point.label, format(point.peak), format(point.average)])}
            isEmpty={peak === null}
            empty={t('chart.no-connection')}
          >
            <Lines summary={summary} points={points} series={names} format={format} />
            <Legend names={names} />
          </ChartCard>
        )
      }}
    </Loaded>
  )
}

import { SimpleGrid } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { lazy } from 'react'
import { useTranslation } from 'react-i18next'
import { useTimeZone } from '../../frame/preferences.ts'
import { ChartCard } from '../../parts/chart/chart-card.tsx'
import { formatBucket, formatMs } from '../../parts/chart/format.ts'
import { ShareCard } from '../../parts/chart/share-card.tsx'
import { faultName } from '../../parts/words/fault-name.ts'
import { numberFormat } from '../../parts/words/formats.ts'
import { CountChart, Legend } from './count-chart.tsx'

type Series = Schemas['DeliverySeries']

const Lines = lazy(() => import('../../parts/chart/charts.tsx').then((charts) => ({ default: charts.Lines })))

/** The charts of a range: attempts by what they came to, and how long answers took. */
export function SeriesCharts({ series }: { series: Series }) {
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Attempts series={series} />
      <Durations series={series} />
    </SimpleGrid>
  )
}

function Attempts({ series }: { series: Series }) {
  const { t, i18n } = useTranslation()
  const timeZone = useTimeZone()
  const { range, buckets, success, retrying } = series
  const number = numberFormat(i18n.language)
  const lost = series.exhausted + series.failed
  const shown = buckets.map((bucket) => ({
    label: formatBucket(bucket.at, range, { language: i18n.language, timeZone }),
    success: bucket.success,
    retrying: bucket.retrying,
    lost: bucket.exhausted + bucket.failed,
  }))
  const names = [
    { key: 'success', name: t('status.success'), color: 'var(--chart-good)' },
    { key: 'retrying', name: t('status.retrying'), color: 'var(--chart-wait)' },
    { key: 'lost', name: t('overview.lost'), color: 'var(--chart-bad)' },
  ]
  const summary = t('chart.attempts-summary', {
    success: number.format(success),
    retrying: number.format(retrying),
    lost: number.format(lost),
  })
  return <CountChart title={t('chart.attempts')} summary={summary} names={names} points={shown} />
}

function Durations({ series }: { series: Series }) {
  const { t, i18n } = useTranslation()
  const timeZone = useTimeZone()
  const { range, buckets, p50_ms: p50, p95_ms: p95 } = series
  const format = (ms: number | null) => (ms === null ? '–' : formatMs(ms, i18n.language))
  const shown = buckets.map((bucket) => ({
    label: formatBucket(bucket.at, range, { language: i18n.language, timeZone }),
    p50: bucket.p50_ms,
    p95: bucket.p95_ms,
  }))
  const names = [
    { key: 'p50', name: t('chart.median'), color: 'var(--chart-line)' },
    { key: 'p95', name: t('chart.p95'), color: 'var(--chart-line-2)' },
  ]
  const summary =
    p50 === null ? t('chart.no-answer') : t('chart.duration-summary', { p50: format(p50), p95: format(p95) })
  return (
    <ChartCard
      title={t('chart.duration')}
      summary={summary}
      columns={[t('chart.time'), ...names.map(({ name }) => name)]}
      rows={shown.map((row) => [row.label, format(row.p50), format(row.p95)])}
      isEmpty={p50 === null}
    >
      <Lines summary={summary} points={shown} series={names} format={format} />
      <Legend names={names} />
    </ChartCard>
  )
}

/** The failures of a range by cause. */
export function Causes({ series }: { series: Series }) {
  const { t } = useTranslation()
  const all = series.causes.reduce((sum, { attempts }) => sum + attempts, 0)
  return (
    <ShareCard
      title={t('chart.causes')}
      summary={t('chart.causes-summary', { count: all })}
      shares={series.causes.slice(0, 8).map(({ cause, attempts }) => ({
        key: cause,
        name: faultName(cause, t),
        count: attempts,
        color: 'red',
      }))}
      total={all}
      empty={t('chart.no-failure')}
    />
  )
}

import { Group, Text } from '@mantine/core'
import { lazy } from 'react'
import { useTranslation } from 'react-i18next'
import { ChartCard } from '../../parts/chart/chart-card.tsx'
import type { ChartPoint, ChartSeries } from '../../parts/chart/charts.tsx'
import { numberFormat } from '../../parts/words/formats.ts'

const StackedBars = lazy(() =>
  import('../../parts/chart/charts.tsx').then((charts) => ({ default: charts.StackedBars })),
)

/** Counts of each bucket of a range, in bars on each other: the first series is what went well. */
export function CountChart({
  title,
  summary,
  empty,
  names,
  points,
}: {
  title: string
  summary: string
  /** Text in place of a chart without counts. */
  empty?: string
  names: readonly ChartSeries[]
  /** The count of each series in each bucket. */
  points: readonly ChartPoint[]
}) {
  const { t, i18n } = useTranslation()
  const number = numberFormat(i18n.language)
  const countOf = (point: ChartPoint, key: string) => Number(point[key] ?? 0)
  return (
    <ChartCard
      title={title}
      summary={summary}
      columns={[t('chart.time'), ...names.map(({ name }) => name)]}
      rows={points.map((point) => [point.label, ...names.map(({ key }) => number.format(countOf(point, key)))])}
      isEmpty={points.every((point) => names.every(({ key }) => countOf(point, key) === 0))}
      {...(empty !== undefined && { empty })}
    >
      <StackedBars summary={summary} points={points} series={names} format={(value) => number.format(value)} />
      <Legend names={names} />
    </ChartCard>
  )
}

/** The series of a chart by colour and name. */
export function Legend({ names }: { names: readonly ChartSeries[] }) {
  return (
    <Group gap="md">
      {names.map(({ key, name, color }) => (
        <Group key={key} gap={6} wrap="nowrap">
          <span className="swatch" style={{ background: color }} />
          <Text size="xs">{name}</Text>
        </Group>
      ))}
    </Group>
  )
}

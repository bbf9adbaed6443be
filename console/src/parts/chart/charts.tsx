import { useDirection } from '@mantine/core'
import { Bar, BarChart, CartesianGrid, Line, LineChart, ResponsiveContainer, Tooltip, XAxis, YAxis } from 'recharts'

/** A series of a chart: the member of its points, what it is called, and a variable of the style sheet. */
export interface ChartSeries {
  key: string
  name: string
  color: string
}

/** A point: its name on the axis, and the value of each series; null where there is none. */
export interface ChartPoint {
  label: string
  [key: string]: string | number | null
}

interface ChartProps {
  /** Text alternative of a chart. */
  summary: string
  points: readonly ChartPoint[]
  series: readonly ChartSeries[]
  format: (value: number) => string
}

const HEIGHT = 200

const TICK = { fill: 'var(--mantine-color-dimmed)', fontSize: 11 }

const TOOLTIP = {
  contentStyle: {
    background: 'var(--mantine-color-body)',
    border: '1px solid var(--line)',
    borderRadius: 'var(--mantine-radius-md)',
    fontSize: 12,
  },
  itemStyle: { color: 'var(--mantine-color-text)', padding: 0 },
  cursor: { fill: 'var(--chart-cursor)', stroke: 'var(--line)' },
  isAnimationActive: false,
} as const

/** The time of a chart runs as its page is read, and its values stand where a line of it begins. */
function useAxes() {
  const isFromRight = useDirection().dir === 'rtl'
  return {
    time: { reversed: isFromRight },
    values: { orientation: isFromRight ? 'right' : 'left' },
    margin: { top: 4, bottom: 0, left: isFromRight ? 4 : 0, right: isFromRight ? 0 : 4 },
  } as const
}

const nameOf = (series: readonly ChartSeries[], key: unknown) => series.find((item) => item.key === key)?.name ?? ''

/** Bars, the series of one point on each other in a constant order. */
export function StackedBars({ summary, points, series, format }: ChartProps) {
  const { time, values, margin } = useAxes()
  return (
    <ResponsiveContainer width="100%" height={HEIGHT}>
      <BarChart data={[...points]} title={summary} margin={margin} barCategoryGap="15%">
        <CartesianGrid vertical={false} stroke="var(--line)" />
        <XAxis {...time} dataKey="label" tick={TICK} tickLine={false} axisLine={false} minTickGap={24} />
        <YAxis
          {...values}
          tick={TICK}
          tickLine={false}
          axisLine={false}
          width={44}
          allowDecimals={false}
          tickFormatter={(value: number) => format(value)}
        />
        <Tooltip {...TOOLTIP} formatter={(value, key) => [format(Number(value)), nameOf(series, key)]} />
        {series.map(({ key, color }) => (
          <Bar key={key} dataKey={key} stackId="all" fill={color} isAnimationActive={false} maxBarSize={40} />
        ))}
      </BarChart>
    </ResponsiveContainer>
  )
}

/** Lines; a point without a value interrupts them. */
export function Lines({ summary, points, series, format }: ChartProps) {
  const { time, values, margin } = useAxes()
  return (
    <ResponsiveContainer width="100%" height={HEIGHT}>
      <LineChart data={[...points]} title={summary} margin={margin}>
        <CartesianGrid vertical={false} stroke="var(--line)" />
        <XAxis {...time} dataKey="label" tick={TICK} tickLine={false} axisLine={false} minTickGap={24} />
        <YAxis
          {...values}
          tick={TICK}
          tickLine={false}
          axisLine={false}
          width={60}
          tickFormatter={(value: number) => format(value)}
        />
        <Tooltip {...TOOLTIP} formatter={(value, key) => [format(Number(value)), nameOf(series, key)]} />
        {series.map(({ key, color }, index) => (
          <Line
            key={key}
            dataKey={key}
            stroke={color}
            strokeWidth={2}
            strokeDasharray={index === 0 ? '0' : '5 3'}
            dot={{ r: 2, fill: color, strokeWidth: 0 }}
            isAnimationActive={false}
          />
        ))}
      </LineChart>
    </ResponsiveContainer>
  )
}

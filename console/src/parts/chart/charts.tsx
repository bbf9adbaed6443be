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

const nameOf = (series: readonly ChartSeries[], key: unknown) => series.find((item) => item.key === key)?.name ?? ''

/** Bars, the series of one point on each other in a constant order. */
export function StackedBars({ summary, points, series, format }: ChartProps) {
  return (
    <ResponsiveContainer width="100%" height={HEIGHT}>
      <BarChart
        data={[...points]}
        title={summary}
        margin={{ top: 4, right: 4, bottom: 0, left: 0 }}
        barCategoryGap="15%"
      >
        <CartesianGrid vertical={false} stroke="var(--line)" />
        <XAxis dataKey="label" tick={TICK} tickLine={false} axisLine={false} minTickGap={24} />
        <YAxis
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
  return (
    <ResponsiveContainer width="100%" height={HEIGHT}>
      <LineChart data={[...points]} title={summary} margin={{ top: 4, right: 4, bottom: 0, left: 0 }}>
        <CartesianGrid vertical={false} stroke="var(--line)" />
        <XAxis dataKey="label" tick={TICK} tickLine={false} axisLine={false} minTickGap={24} />
        <YAxis
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

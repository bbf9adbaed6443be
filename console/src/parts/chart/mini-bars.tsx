import { Tooltip } from '@mantine/core'

const HEIGHT = 24

/** A bar of a small chart: its place from where a line begins, what is good, and what is bad on top of it. */
export interface MiniBar {
  place: number
  good: number
  bad: number
}

/** Bars in the height of a line of text. Their sentence says what they show. `step`: width of a place, px. */
export function MiniBars({
  bars,
  places,
  step,
  summary,
}: {
  bars: readonly MiniBar[]
  places: number
  step: number
  summary: string
}) {
  const highest = Math.max(1, ...bars.map(({ good, bad }) => good + bad))
  return (
    <Tooltip label={summary}>
      <svg className="mini-bars" width={places * step} height={HEIGHT} role="img" aria-label={summary}>
        <line x1={0} x2={places * step} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} stroke="var(--line)" />
        {bars.map(({ place, good, bad }) => {
          const [low, high] = [(good / highest) * HEIGHT, (bad / highest) * HEIGHT]
          return (
            <g key={place}>
              <rect x={place * step} width={step - 1} y={HEIGHT - low} height={low} fill="var(--chart-good)" />
              <rect x={place * step} width={step - 1} y={HEIGHT - low - high} height={high} fill="var(--chart-bad)" />
            </g>
          )
        })}
      </svg>
    </Tooltip>
  )
}

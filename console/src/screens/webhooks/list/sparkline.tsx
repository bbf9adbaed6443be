import { Tooltip } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'

const HOURS = 24
const HOUR_MS = 3_600_000
const HEIGHT = 24
const STEP = 4

/** The attempts of the last 24 hours, a bar for each: what failed on top. Its sentence says the sums. */
export function Sparkline({ activity, nowMs }: { activity: Schemas['WebhookActivity'] | undefined; nowMs: number }) {
  const { t } = useTranslation()
  if (!activity) return <>–</>
  const { success, retrying, failed, hours } = activity
  const first = (Math.floor(nowMs / HOUR_MS) - HOURS + 1) * HOUR_MS
  const highest = Math.max(1, ...hours.map((hour) => hour.success + hour.retrying + hour.failed))
  const summary = t('spark.summary', { success, failed: retrying + failed })
  return (
    <Tooltip label={summary}>
      <svg width={HOURS * STEP} height={HEIGHT} role="img" aria-label={summary} style={{ display: 'block' }}>
        <line x1={0} x2={HOURS * STEP} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} stroke="var(--line)" />
        {hours.map((hour) => {
          const place = Math.round((Date.parse(hour.hour) - first) / HOUR_MS)
          const good = (hour.success / highest) * HEIGHT
          const bad = ((hour.retrying + hour.failed) / highest) * HEIGHT
          return (
            <g key={hour.hour}>
              <rect x={place * STEP} width={STEP - 1} y={HEIGHT - good} height={good} fill="var(--chart-good)" />
              <rect x={place * STEP} width={STEP - 1} y={HEIGHT - good - bad} height={bad} fill="var(--chart-bad)" />
            </g>
          )
        })}
      </svg>
    </Tooltip>
  )
}

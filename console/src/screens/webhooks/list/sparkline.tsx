import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { MiniBars } from '../../../parts/chart/mini-bars.tsx'

const HOURS = 24
const HOUR_MS = 3_600_000

/** The attempts of the last 24 hours, a bar for each: what failed on top. Its sentence says the sums. */
export function Sparkline({ activity, nowMs }: { activity: Schemas['WebhookActivity'] | undefined; nowMs: number }) {
  const { t } = useTranslation()
  if (!activity) return <>–</>
  const { success, retrying, failed, hours } = activity
  const first = (Math.floor(nowMs / HOUR_MS) - HOURS + 1) * HOUR_MS
  const bars = hours.map((hour) => ({
    place: Math.round((Date.parse(hour.hour) - first) / HOUR_MS),
    good: hour.success,
    bad: hour.retrying + hour.failed,
  }))
  return (
    <MiniBars
      bars={bars}
      places={HOURS}
      step={4}
      summary={t('spark.summary', { success, failed: retrying + failed })}
    />
  )
}

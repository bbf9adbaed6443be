import { Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { useNow } from '../../parts/time.tsx'
import { numberFormat } from '../../parts/words/formats.ts'

/** When the five POSTs of a delivery are due after the first, minutes: each delay counts from the attempt before it. */
const DUE_MINUTES = [0, 1, 6, 36, 156] as const

/** A place on the strip in percent: a scale by square roots leaves room between the first two. Pure. */
const placeOf = (minutes: number) => (Math.sqrt(minutes) / Math.sqrt(DUE_MINUTES[4])) * 100

/** The schedule of a delivery drawn to scale: what was posted, what comes, and when. */
export function RetryStrip({ delivery }: { delivery: Schemas['DispatchWithAttempts'] }) {
  const { t, i18n } = useTranslation()
  const nowMs = useNow()
  const { status, attempts_log, next_attempt_at } = delivery
  const scheduled = attempts_log.filter(({ trigger }) => trigger !== 'replay')
  const isWaiting = next_attempt_at !== null
  const secondsLeft = isWaiting ? Math.max(0, Math.round((Date.parse(next_attempt_at) - nowMs) / 1000)) : 0
  const left = numberFormat(i18n.language, {
    style: 'unit',
    unit: secondsLeft < 120 ? 'second' : 'minute',
    unitDisplay: 'long',
  }).format(secondsLeft < 120 ? secondsLeft : Math.round(secondsLeft / 60))
  const summary = isWaiting
    ? t('strip.next', { number: Math.min(5, scheduled.length + 1), left })
    : scheduled.at(-1)?.error_class === null
      ? t('strip.delivered', { number: scheduled.length })
      : t('strip.over', { count: scheduled.length })
  const nameOf = (minutes: number) =>
    numberFormat(i18n.language, {
      style: 'unit',
      unit: minutes < 60 ? 'minute' : 'hour',
      unitDisplay: 'short',
      maximumFractionDigits: 1,
    }).format(minutes < 60 ? minutes : minutes / 60)
  return (
    <div className="strip-room">
      <div className="strip" role="img" aria-label={summary}>
        <div className="track" />
        {DUE_MINUTES.map((minutes, index) => (
          <div key={minutes} className="stop" style={{ insetInlineStart: `${placeOf(minutes)}%` }}>
            <span className="dot" data-state={stateOf(scheduled[index], status)} />
            <span className="due">{index === 0 ? t('strip.first') : nameOf(minutes)}</span>
          </div>
        ))}
      </div>
      <Text size="sm" c="dimmed">
        {summary}
      </Text>
    </div>
  )
}

function stateOf(attempt: Schemas['Attempt'] | undefined, status: Schemas['DispatchStatus']) {
  if (!attempt) return status === 'cancelled' ? 'cancelled' : 'planned'
  return attempt.error_class === null ? 'success' : 'failed'
}

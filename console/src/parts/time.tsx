import { useCallback, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useTimeZone } from '../frame/preferences.ts'
import { describeAge } from './age.ts'
import { formatInstant } from './format-instant.ts'
import { Hint } from './hint.tsx'
import { dateFormat } from './words/formats.ts'

/** Distance below which a time ahead is counted down by the second, ms. */
const NEAR_MS = 120_000

/** The time, again each second while a component shows it. */
export function useNow(everyMs = 1_000): number {
  const [nowMs, setNowMs] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return nowMs
}

/** Formats instants in the language and the time zone of this browser's choices; the same function for the same choices. */
export function useDateFormat(style: Intl.DateTimeFormatOptions): (at: string | number) => string {
  const { i18n } = useTranslation()
  const timeZone = useTimeZone()
  const intl = dateFormat(i18n.language, { ...style, ...(timeZone && { timeZone }) })
  return useCallback((at) => intl.format(new Date(at)), [intl])
}

/** Whether an instant comes so soon that its seconds are counted down. */
function isNear(at: string | null): boolean {
  if (at === null) return false
  const leftMs = Date.parse(at) - Date.now()
  return leftMs > 0 && leftMs < NEAR_MS
}

/** An instant: how long ago it was, and the whole of it in its tooltip. */
export function Time({ at }: { at: string | null }) {
  const { i18n } = useTranslation()
  const nowMs = useNow(isNear(at) ? 1_000 : 10_000)
  const timeZone = useTimeZone()
  if (at === null) return <>–</>
  const whole = formatInstant(at, i18n.language, timeZone)
  return (
    <Hint label={`${whole} · ${at}`}>
      <time dateTime={at} className="nowrap">
        {describeAge(Date.parse(at), nowMs, i18n.language)}
      </time>
    </Hint>
  )
}

/** An instant as it is, to the second. */
export function Instant({ at }: { at: string | null }) {
  const { i18n } = useTranslation()
  const timeZone = useTimeZone()
  if (at === null) return <>–</>
  return (
    <time dateTime={at} className="nowrap">
      {formatInstant(at, i18n.language, timeZone)}
    </time>
  )
}

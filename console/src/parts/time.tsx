import { Text, Tooltip } from '@mantine/core'
import { useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useTimeZone } from '../frame/preferences.ts'
import { describeAge } from './age.ts'
import { formatInstant } from './format-instant.ts'

/** The time, again each second while a component shows it. */
export function useNow(everyMs = 1_000): number {
  const [nowMs, setNowMs] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return nowMs
}

/** Formats instants in the language and the time zone of this browser's choices. */
export function useDateFormat(style: Intl.DateTimeFormatOptions): (at: string | number) => string {
  const { i18n } = useTranslation()
  const timeZone = useTimeZone()
  const key = JSON.stringify(style)
  return useMemo(() => {
    const format = new Intl.DateTimeFormat(i18n.language, { ...JSON.parse(key), ...(timeZone && { timeZone }) })
    return (at) => format.format(new Date(at))
  }, [i18n.language, timeZone, key])
}

/** An instant: how long ago it was, and the whole of it in its tooltip. */
export function Time({ at }: { at: string | null }) {
  const { i18n } = useTranslation()
  const nowMs = useNow(10_000)
  const timeZone = useTimeZone()
  if (at === null) return <Text component="span">–</Text>
  const whole = formatInstant(at, i18n.language, timeZone)
  return (
    <Tooltip label={`${whole} · ${at}`}>
      <time dateTime={at} className="nowrap">
        {describeAge(Date.parse(at), nowMs, i18n.language)}
      </time>
    </Tooltip>
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

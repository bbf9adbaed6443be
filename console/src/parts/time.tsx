import { Text, Tooltip } from '@mantine/core'
import { useEffect, useState } from 'react'
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

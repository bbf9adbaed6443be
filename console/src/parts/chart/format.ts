import { dateFormat, numberFormat } from '../words/formats.ts'
/** The ranges of the dashboard. */
export const RANGES = ['1h', '24h', '7d', '30d'] as const

export type Range = (typeof RANGES)[number]

/** A bucket of a range as an axis names it: its time within a day, its day and time within a week, else its day. Pure. */
export function formatBucket(
  at: string,
  range: Range,
  { language, timeZone }: { language: string; timeZone: 'UTC' | undefined },
): string {
  const zone = timeZone && { timeZone }
  const clock = { hour: '2-digit', minute: '2-digit' } as const
  const day = { day: 'numeric', month: 'short' } as const
  if (range === '1h' || range === '24h') return dateFormat(language, { ...clock, ...zone }).format(new Date(at))
  // A bucket of a day is one of UTC.
  if (range === '30d') return dateFormat(language, { ...day, timeZone: 'UTC' }).format(new Date(at))
  return dateFormat(language, { ...day, ...clock, ...zone }).format(new Date(at))
}

/** A duration: in milliseconds below a second. Pure. */
export function formatMs(ms: number, language: string): string {
  const [value, unit] = ms < 1_000 ? [Math.round(ms), 'millisecond'] : [ms / 1_000, 'second']
  const text = numberFormat(language, {
    style: 'unit',
    unit,
    unitDisplay: 'short',
    maximumFractionDigits: unit === 'second' ? 1 : 0,
  }).format(value)
  // A label of an axis is broken at spaces.
  return text.replaceAll(' ', '\u00a0')
}

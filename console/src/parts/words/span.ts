import { numberFormat } from './formats.ts'

/** Units of a span, the largest first, with their length in milliseconds. */
const UNITS = [
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
  ['millisecond', 1],
] as const

/** A span of time in its largest unit, with one decimal. Pure. */
export function formatSpan(ms: number, language: string): string {
  const [unit, length] = UNITS.find(([, size]) => ms >= size) ?? UNITS[3]
  const options = {
    style: 'unit',
    unit,
    unitDisplay: 'short',
    maximumFractionDigits: unit === 'millisecond' ? 0 : 1,
  } as const
  return numberFormat(language, options).format(Math.max(0, ms) / length)
}

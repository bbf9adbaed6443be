import { ageFormat, numberFormat } from './words/formats.ts'

/** Largest unit first, with its length in seconds. */
const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

/** An instant in words, seen from now: `in 4 minutes`, `2 days ago`. Pure. */
export function describeAge(atMs: number, nowMs: number, language: string): string {
  const seconds = Math.round((atMs - nowMs) / 1000)
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1]
  return ageFormat(language, { numeric: 'auto', style: 'short' }).format(Math.round(seconds / length), unit)
}

/** A length of time in its largest whole unit: `30 min`, `2 hr`. Pure. */
export function describeLength(seconds: number, language: string): string {
  const [unit, length] = UNITS.find(([, size]) => seconds >= size && seconds % size === 0) ?? ['second', 1]
  return numberFormat(language, { style: 'unit', unit }).format(seconds / length)
}

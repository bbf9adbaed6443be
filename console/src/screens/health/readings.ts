import { useState } from 'react'

/** Readings that are kept: an hour at one in 15 seconds. */
const KEPT = 240

/** A figure at an instant, ms since 1970. */
export interface Reading {
  atMs: number
  value: number
}

/** Readings with one more, if it is newer than the last one; the oldest make room. Pure. */
export function addReading(readings: readonly Reading[], next: Reading): readonly Reading[] {
  if (next.atMs <= (readings.at(-1)?.atMs ?? 0)) return readings
  return [...readings, next].slice(-KEPT)
}

/** Readings of a figure since the screen was opened, of the last hour at most. */
export function useReadings(next: Reading): readonly Reading[] {
  const [kept, setKept] = useState<readonly Reading[]>([])
  const readings = addReading(kept, next)
  if (readings !== kept) setKept(readings)
  return readings
}

import { createHash } from 'node:crypto'
import type { Id } from '../../base/id.ts'
import type { Random } from '../../base/random.ts'

/** Numbers that repeat with a seed: of sample data, never of secrets. */
export interface Dice {
  /** A number from 0, below 1. */
  next(): number
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number
  pick<Value>(values: readonly Value[]): Value
  chance(share: number): boolean
  /** The same numbers as bytes, for ids. */
  random: Random
}

/** Builds numbers of a seed (mulberry32: 32 bits of state, even over its period). */
export function buildDice(seed: number): Dice {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    between,
    pick: (values) => {
      const value = values[between(0, values.length - 1)]
      if (value === undefined) throw new Error('there is nothing to pick from')
      return value
    },
    chance: (share) => next() < share,
    random: { bytes: (length) => Buffer.from(Array.from({ length }, () => between(0, 255))) },
  }
}

/** A row id that is the same for each fill with the same seed: a UUID of version 8 (RFC 9562, section 5.8). */
export function buildSampleId<Noun extends string>(seed: number, kind: Noun, number: number): Id<Noun> {
  const bytes = createHash('sha256').update(`signalbox sample ${seed} ${kind} ${number}`).digest().subarray(0, 16)
  bytes[6] = 0x80 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-') as Id<Noun>
}

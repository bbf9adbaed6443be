import { createHash } from 'node:crypto'
import type { Random } from '../../src/base/random.ts'

/** The seed of a run: SIMULATION_SEED when it is set, else a new one. Printed with every failure, so that it can be run again. */
export function chooseSeed(): number {
  const given = process.env.SIMULATION_SEED
  return given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given)
}

/** Chance that a seed repeats. */
export interface Dice {
  /** A number from 0 up to 1. */
  roll(): number
  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number
  pick<Value>(values: readonly Value[]): Value
  chance(probability: number): boolean
}

/** Builds dice (mulberry32). */
export function buildDice(seed: number): Dice {
  let state = seed >>> 0
  const roll = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    roll,
    between: (from, to) => from + Math.floor(roll() * (to - from + 1)),
    pick: (values) => values[Math.floor(roll() * values.length)]!,
    chance: (probability) => roll() < probability,
  }
}

/** A number from 0 up to 1 that follows from its parts alone, whatever order they are asked in. */
export function rollFor(seed: number, ...parts: (string | number)[]): number {
  return (
    createHash('sha256')
      .update(`${seed} ${parts.join(' ')}`)
      .digest()
      .readUInt32BE() /
    2 ** 32
  )
}

/** Bytes for ids and secrets, out of the dice. */
export function buildSeededRandom(dice: Dice): Random {
  return { bytes: (length) => Buffer.from(Array.from({ length }, () => dice.between(0, 255))) }
}

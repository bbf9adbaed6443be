import type { Insertable } from 'kysely'
import type { IdMaker, UserId } from '../../base/id.ts'
import { buildIdMaker } from '../../base/id.ts'
import type { Random } from '../../base/random.ts'
import type { DB } from '../../postgres/statement/tables.generated.ts'
import { buildDice, buildSampleId, type Dice } from './dice.ts'

/** Rows of sample data by table, in the order in which they are written. */
export type SampleRows = { [Table in keyof DB]?: Insertable<DB[Table]>[] }

/** The facts of a database that sample data refers to. */
export interface SampleFacts {
  roles: ReadonlyMap<string, string>
  eventTypes: ReadonlyMap<string, string>
  administrator: UserId
}

export interface SampleInput extends SampleFacts {
  seed: number
  /** The end of the filled month. */
  now: Date
  /** The URL of the service's own receiver. */
  sinkUrl: string
  /** Encrypts a secret for a row, with the context of that row. */
  seal: (context: string) => string
  /** Random bytes of unknown tokens. */
  random: Random
}

/** The state of a fill that its parts share. */
export interface SamplePlan extends SampleInput {
  dice: Dice
  /** The id of a row by its kind and number, the same with each fill. */
  idOf: <Noun extends string>(kind: Noun, number: number) => ReturnType<typeof buildSampleId<Noun>>
  before: (ms: number) => Date
}

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** The month, in days: a little less than the retention of ledger rows, so that maintenance deletes none at once. */
export const FILLED_DAYS = 29

/** Builds the state of a fill. */
export function buildSamplePlan(input: SampleInput): SamplePlan {
  return {
    ...input,
    dice: buildDice(input.seed),
    idOf: (kind, number) => buildSampleId(input.seed, kind, number),
    before: (ms) => new Date(input.now.getTime() - Math.round(ms)),
  }
}

/** Makes ids of given instants, which must not go back. */
export function buildTimedIds(dice: Dice): (at: Date) => IdMaker {
  let atMs = 0
  const ids = buildIdMaker({ now: () => atMs }, dice.random)
  return (at) => {
    atMs = at.getTime()
    return ids
  }
}

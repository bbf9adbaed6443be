import type { Keyring } from '../base/keyring.ts'
import type { LedgerWalk, OwnEdges } from './own-retention.ts'
import type { Database } from './statement/database.ts'

/** Parameters of a sweep. */
export interface SweepContext {
  db: Database
  /** Now, by the clock of the database. */
  now: Date
  /** Maximum number of rows in one statement, so that no delivery waits (docs/contract/delivery.md#retention). */
  limit: number
  /** Ledger rows that ended before this have expired (`WEBHOOK_LEDGER_RETENTION_DAYS`). */
  ledgerBefore: Date
  /** The edges of accounts with a retention of their own: one read for each round, by the first step that asks. */
  readOwnEdges: () => Promise<OwnEdges>
  /** The walks of this process, by the name of their step. */
  walks: Map<string, LedgerWalk>
  /** Audit entries from before this have expired (`AUDIT_RETENTION_DAYS`). */
  auditBefore: Date
  workerId: string
  keyring: Keyring
}

/** A step of the maintenance, which removes or updates rows of a feature. Several processes may run it at once. */
export interface Sweep {
  /** Name of its count, in camel case: a label of the metric, and a field of the log line in snake case. */
  counts: readonly [name: string, ...others: string[]]
  /** Whether it runs until a statement finds fewer than `limit` rows, by its first count. */
  isBatched: boolean
  /** Whether another batch follows one that found fewer rows. */
  goesOn?(context: SweepContext): boolean
  /** Returns the counts, in their order. */
  run(context: SweepContext): Promise<readonly number[]>
}

/** A sweep that runs once and counts one thing. */
export function sweepOnce(name: string, run: (context: SweepContext) => Promise<number>): Sweep {
  return { counts: [name], isBatched: false, run: async (context) => [await run(context)] }
}

/** A sweep in batches, which counts one thing. */
export function sweepBatches(name: string, run: (context: SweepContext) => Promise<number>): Sweep {
  return { ...sweepOnce(name, run), isBatched: true }
}

/** A sweep in batches of rows that ended `keptMs` ago. */
export function sweepOld(
  name: string,
  keptMs: number,
  deleteOld: (db: Database, before: Date, limit: number) => Promise<number>,
): Sweep {
  return sweepBatches(name, ({ db, now, limit }) => deleteOld(db, new Date(now.getTime() - keptMs), limit))
}

/** A sweep in batches of rows that are kept as long as the ledgers. */
export function sweepLedger(
  name: string,
  deleteOld: (db: Database, before: Date, limit: number) => Promise<number>,
): Sweep {
  return sweepBatches(name, ({ db, ledgerBefore, limit }) => deleteOld(db, ledgerBefore, limit))
}

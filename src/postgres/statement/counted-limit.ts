import type { Database } from './database.ts'
import { ADVISORY_LOCKS, LOCK_ORDER } from './locks.ts'
import { aheadStatement, statement } from './statement.ts'

/** A lock of the register: of rows of a table, or an advisory lock by its name. */
export type LockName = (typeof LOCK_ORDER)[number] | keyof typeof ADVISORY_LOCKS

/** Forms of counting a limit: each takes the lock before the snapshot of the count. */
type Counting =
  /** One statement. `rows` selects what is locked, as the part `locked`; `read` counts by volatile functions of its columns. */
  | { rows: string; before?: string; read: string }
  /** Two statements in one round trip: `take` waits for the lock. */
  | { take: string; count: string }
  /**
   * One statement that calls `by`, a function of the database that locks and then counts. `adds`: the statement adds the row
   * too, so that it may be its own transaction.
   */
  | { by: string; call: string; adds?: boolean }

/** A limit of rows. */
export interface CountedLimit {
  /** Name of the counted rows, in messages. */
  counts: string
  /** The lock behind which no other transaction adds such a row. */
  lock: LockName
  counting: Counting
  /** Its statements, in their order. */
  texts: readonly string[]
}

const limits: CountedLimit[] = []

/** Every limit that was defined: those of the modules that are loaded. */
export const listCountedLimits = (): readonly CountedLimit[] => limits

/**
 * Defines a limit that counts rows, and returns the function that counts it. A statement that waits for a lock reads
 * the state before its wait; each form of `Counting` reads after it, so no parallel request sees too few rows
 * (docs/decisions/0030-locks.md). The function takes the lock itself, even if the transaction already holds it, and
 * throws outside a transaction, where the lock would be released before the row is added. Both of two statements take
 * their values from `params`. Returns the rows.
 */
export function countBehindLock<Row, Params extends object>(
  limit: Pick<CountedLimit, 'counts' | 'lock'> & Counting,
): (db: Database, params: Params) => Promise<Row[]> {
  const { counts, lock } = limit
  if (!isRegistered(lock)) throw new Error(`the lock ${lock} is not in src/postgres/statement/locks.ts`)
  const texts = buildTexts(limit)
  limits.push({ counts, lock, counting: limit, texts })
  const ahead = texts.slice(0, -1).map((text) => aheadStatement<object>(text))
  const count = statement<Row, object>(texts.at(-1) ?? '')
  const isWhole = 'by' in limit && limit.adds === true
  return async (db, params) => {
    if (!db.isTransaction && !isWhole)
      throw new Error(`${counts} are counted in a transaction, which keeps the lock of ${lock}`)
    for (const take of ahead) await take(db, params)
    return count(db, params)
  }
}

function isRegistered(lock: string): boolean {
  return lock in ADVISORY_LOCKS || LOCK_ORDER.some((name) => name === lock)
}

function buildTexts(counting: Counting): string[] {
  if ('rows' in counting) {
    const { before, rows, read } = counting
    return [`with ${before === undefined ? '' : `${before}, `}locked as (${rows} for no key update) ${read}`]
  }
  return 'take' in counting ? [counting.take, counting.count] : [counting.call]
}

import { type CompiledQuery, type Selectable, sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import { closingStatement } from '../postgres/statement.ts'
import type { LoginThrottle } from '../postgres/tables.generated.ts'
import { SUBJECTS, type Subject, type ThrottleState, type ThrottleStates } from './login-throttle.ts'

/** The keys of an attempt's rows. */
export interface ThrottleKey {
  emailHash: Buffer
  addressHash: Buffer
}

/** Stands for a hash that a row does not have. Sorts before every hash. */
const NONE = Buffer.alloc(0)

/** The primary key of a subject's row. The order of `SUBJECTS` is the order of the index. */
function rowKeyOf({ emailHash, addressHash }: ThrottleKey, subject: Subject): ThrottleKey {
  return {
    emailHash: subject === 'address' ? NONE : emailHash,
    addressHash: subject === 'email' ? NONE : addressHash,
  }
}

/**
 * Locks the rows of an attempt's subjects until the transaction ends, and reads them, in one statement. Inserts missing
 * rows, without failures, to lock them. Every attempt locks in the same order, which prevents deadlocks.
 */
export async function lockThrottles(db: Database, key: ThrottleKey, now: Date): Promise<ThrottleStates> {
  const keys = SUBJECTS.map((subject) => rowKeyOf(key, subject))
  const rows = await db
    .insertInto('login_throttle')
    .values(
      keys.map(({ emailHash, addressHash }) => ({
        email_hash: emailHash,
        address_hash: addressHash,
        failures: 0,
        last_failure_at: now,
      })),
    )
    // An update without a change: locks and returns a row that may have to be inserted first.
    .onConflict((conflict) =>
      conflict
        .columns(['email_hash', 'address_hash'])
        .doUpdateSet((eb) => ({ failures: eb.ref('login_throttle.failures') })),
    )
    .returning(COLUMNS)
    .execute()
  const stateOf = (subject: Subject) => {
    const { emailHash, addressHash } = rowKeyOf(key, subject)
    const row = rows.find((one) => one.email_hash.equals(emailHash) && one.address_hash.equals(addressHash))
    if (!row) throw new Error('a row of the sign-in throttle was lost while it was locked')
    return toThrottleState(row)
  }
  return { address: stateOf('address'), email: stateOf('email'), pair: stateOf('pair') }
}

const COLUMNS = ['email_hash', 'address_hash', 'failures', 'last_failure_at', 'wait_until', 'turn_at'] as const

function toThrottleState(row: Pick<Selectable<LoginThrottle>, (typeof COLUMNS)[number]>): ThrottleState {
  return {
    failures: row.failures,
    lastFailureAt: row.last_failure_at,
    waitUntil: row.wait_until,
    turnAt: row.turn_at,
  }
}

/** Writes the states of locked rows, in one statement that `mark` places in its transaction. Does nothing for an empty list. */
export async function writeThrottles(
  tx: Database,
  input: { key: ThrottleKey; states: Partial<ThrottleStates>; mark: (query: CompiledQuery) => CompiledQuery },
): Promise<void> {
  const { key, states, mark } = input
  const written = SUBJECTS.flatMap((subject) => {
    const state = states[subject]
    return state ? [{ ...rowKeyOf(key, subject), ...state }] : []
  })
  if (written.length === 0) return
  const column = <Value>(pick: (row: (typeof written)[number]) => Value) => written.map(pick)
  const query = sql`
    update login_throttle t
    set failures = x.failures, last_failure_at = x.last_failure_at, wait_until = x.wait_until, turn_at = x.turn_at
    from unnest(
      ${column((row) => row.emailHash)}::bytea[], ${column((row) => row.addressHash)}::bytea[],
      ${column((row) => row.failures)}::int[], ${column((row) => row.lastFailureAt)}::timestamptz[],
      ${column((row) => row.waitUntil)}::timestamptz[], ${column((row) => row.turnAt)}::timestamptz[]
    ) as x (email_hash, address_hash, failures, last_failure_at, wait_until, turn_at)
    where t.email_hash = x.email_hash and t.address_hash = x.address_hash`.compile(tx)
  await tx.executeQuery(mark(query))
}

const forgetEmails = closingStatement(`
  forgotten_emails as (
    delete from login_throttle where (email_hash, address_hash) in (
      select email_hash, address_hash from login_throttle where email_hash = any($1)
      order by email_hash, address_hash for update))`)

/**
 * Deletes the rows of e-mail addresses, also of their pairs, locked in the order in which attempts lock them, with the last
 * statement of the transaction.
 */
export async function deleteThrottlesOfEmails(db: Database, emailHashes: readonly Buffer[]): Promise<void> {
  await forgetEmails(db, [emailHashes])
}

/** Deletes subjects whose last failure is older than `before`. Returns their number. For maintenance. */
export async function deleteForgottenThrottles(db: Database, before: Date): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('login_throttle')
    .where('last_failure_at', '<', before)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

import { type CompiledQuery, type Selectable, sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import { aheadStatement } from '../postgres/statement.ts'
import type { LoginThrottle } from '../postgres/tables.generated.ts'
import { SUBJECTS, type Subject, type ThrottleState, type ThrottleStates } from './login-throttle.ts'

/** What the rows of an attempt are found by. */
export interface ThrottleKey {
  emailHash: Buffer
  addressHash: Buffer
}

/** In place of the hash that a row does not have. It sorts before every hash. */
const NONE = Buffer.alloc(0)

/** The primary key of a subject's row. In the order of `SUBJECTS` the rows are in the order of the index. */
function rowKeyOf({ emailHash, addressHash }: ThrottleKey, subject: Subject): ThrottleKey {
  return {
    emailHash: subject === 'address' ? NONE : emailHash,
    addressHash: subject === 'email' ? NONE : addressHash,
  }
}

/**
 * The states of an attempt's subjects, locked until the transaction ends, in one statement. Missing rows are inserted,
 * without failures, so that there is something to lock. Every attempt locks in the same order, so none wait for each other in a circle.
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
    // Writes what is there: the way to lock and read a row that may have to be inserted first.
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

/** Writes the states of locked rows, in one statement that `mark` places in its transaction. Does nothing for none. */
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

const forgetEmail = aheadStatement(`
  delete from login_throttle where (email_hash, address_hash) in (
    select email_hash, address_hash from login_throttle where email_hash = $1
    order by email_hash, address_hash for update)`)

/** Forgets an e-mail address: its own row and its pairs, locked in the order in which attempts lock them. */
export async function deleteThrottlesOfEmail(db: Database, emailHash: Buffer): Promise<void> {
  await forgetEmail(db, [emailHash])
}

/** Forgets subjects whose last failure is older than `before`. Returns how many went. For maintenance. */
export async function deleteForgottenThrottles(db: Database, before: Date): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('login_throttle')
    .where('last_failure_at', '<', before)
    .executeTakeFirst()
  return Number(numDeletedRows)
}

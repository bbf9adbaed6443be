import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../postgres/statement/record.ts'
import { closingStatement, type Joined, statement } from '../../postgres/statement/statement.ts'
import {
  type CredentialRow,
  type Credentials,
  hasEmail,
  OF_CREDENTIALS,
  toCredentials,
} from '../user-record/user.store.ts'
import { SUBJECTS, type Subject, type ThrottleStates } from './login-throttle.ts'

/** The keys of an attempt's rows. */
export interface ThrottleKey {
  emailHash: Buffer
  addressHash: Buffer
}

/** Placeholder for a missing hash. Sorts before every hash. */
const NONE = Buffer.alloc(0)

/** The primary key of a subject's row. The order of `SUBJECTS` is the order of the index. */
function rowKeyOf({ emailHash, addressHash }: ThrottleKey, subject: Subject): ThrottleKey {
  return {
    emailHash: subject === 'address' ? NONE : emailHash,
    addressHash: subject === 'email' ? NONE : addressHash,
  }
}

const throttle = defineRecord('login_throttle', [
  'email_hash',
  'address_hash',
  'failures',
  'last_failure_at',
  'wait_until',
  'turn_at',
])

type LockedRow = RecordOf<typeof throttle> & Joined<CredentialRow> & { hasFactor: boolean }

/** The keys of the rows, in the order of `SUBJECTS`, which is also that of the index. */
const keysOf = (email: string) =>
  `(''::bytea, $addressHash::bytea), (${email}::bytea, ''::bytea), (${email}::bytea, $addressHash::bytea)`

/**
 * An update without a change locks and returns a row that may have to be inserted first. The transaction that counts an
 * attempt does not wait for the disk: a crash of the server loses the counts of its last second, as for a strict limit.
 * An e-mail address counts as the user that it matches (`hashSubject` of kind `user`), else by its own hash.
 */
const lockAll = statement<LockedRow, ThrottleKey & { email: string | null; now: Date }>(`
  with named as materialized (
    select ${OF_CREDENTIALS}, has_second_factor(u.document_id) as "hasFactor" from "user" u where ${hasEmail('$email')}
  ), subject as materialized (
    select coalesce(
      (select sha256(convert_to('user:' || n.id, 'UTF8')) from named n), $emailHash::bytea) as hash
  ), t as (
    insert into login_throttle (email_hash, address_hash, failures, last_failure_at)
    select k.email_hash, k.address_hash, 0, $now
    from subject s cross join lateral (values ${keysOf('s.hash')}) k (email_hash, address_hash),
      (select set_config('synchronous_commit', 'off', true)) relaxed
    on conflict (email_hash, address_hash) do update set failures = login_throttle.failures
    returning *
  )
  select ${throttle.members('t')}, n.* from t left join named n on true`)

/** The user of an attempt. */
export interface NamedUser {
  /** The user with the address, not deleted, and the hash of its password. */
  credentials: Credentials | undefined
  /** Whether it has a second factor. */
  hasFactor: boolean
}

/** The subjects of an attempt, locked, and its user. */
export interface LockedAttempt extends NamedUser {
  /** The keys of the rows: with the user of the attempt, if any, in place of the e-mail address. */
  key: ThrottleKey
  states: ThrottleStates
}

/**
 * Locks the rows of an attempt's subjects until the transaction ends, and reads them with its user, in one statement;
 * without one if `email` is null. Inserts missing rows, without failures, to lock them. Every attempt locks in the same
 * order, which prevents deadlocks.
 */
export async function lockAttempt(
  db: Database,
  { key, email, now }: { key: ThrottleKey; email: string | null; now: Date },
): Promise<LockedAttempt> {
  const rows = await lockAll(db, { ...key, email, now })
  const emailHash = rows.find((row) => row.emailHash.length > 0)?.emailHash ?? key.emailHash
  const locked = { emailHash, addressHash: key.addressHash }
  const stateOf = (subject: Subject) => {
    const { emailHash, addressHash } = rowKeyOf(locked, subject)
    const row = rows.find((row) => row.emailHash.equals(emailHash) && row.addressHash.equals(addressHash))
    if (!row) throw new Error('a row of the sign-in throttle was lost while it was locked')
    const { failures, lastFailureAt, waitUntil, turnAt } = row
    return { failures, lastFailureAt, waitUntil, turnAt }
  }
  const [first] = rows
  return {
    key: locked,
    states: { address: stateOf('address'), email: stateOf('email'), pair: stateOf('pair') },
    credentials: first && hasUser(first) ? toCredentials(pickCredentials(first)) : undefined,
    hasFactor: first?.hasFactor ?? false,
  }
}

function hasUser(row: LockedRow): row is LockedRow & CredentialRow {
  return row.id !== null
}

/** The row without the members of the throttle. */
function pickCredentials(row: LockedRow & CredentialRow): CredentialRow {
  const { emailHash, addressHash, failures, lastFailureAt, waitUntil, turnAt, hasFactor, ...credentials } = row
  return credentials
}

/** Writes the states of locked rows, which therefore exist, with the last statement of the transaction. Does nothing without any. */
export async function writeThrottles(tx: Database, key: ThrottleKey, states: Partial<ThrottleStates>): Promise<void> {
  const written = SUBJECTS.flatMap((subject) => {
    const state = states[subject]
    return state ? [{ ...rowKeyOf(key, subject), ...state }] : []
  })
  if (written.length === 0) return
  const column = <Value>(pick: (row: (typeof written)[number]) => Value) => written.map(pick)
  await write(tx, {
    emailHashes: column((row) => row.emailHash),
    addressHashes: column((row) => row.addressHash),
    failures: column((row) => row.failures),
    lastFailures: column((row) => row.lastFailureAt),
    waits: column((row) => row.waitUntil),
    turns: column((row) => row.turnAt),
  })
}

const write = closingStatement<{
  emailHashes: readonly Buffer[]
  addressHashes: readonly Buffer[]
  failures: readonly number[]
  lastFailures: readonly Date[]
  waits: readonly (Date | null)[]
  turns: readonly (Date | null)[]
}>(`
  counted_attempt as (
    insert into login_throttle (email_hash, address_hash, failures, last_failure_at, wait_until, turn_at)
    select * from unnest($emailHashes::bytea[], $addressHashes::bytea[], $failures::int[], $lastFailures::timestamptz[],
      $waits::timestamptz[], $turns::timestamptz[])
    on conflict (email_hash, address_hash) do update set failures = excluded.failures,
      last_failure_at = excluded.last_failure_at, wait_until = excluded.wait_until, turn_at = excluded.turn_at)`)

/**
 * The rows are looked up and locked one by one, in the order of their keys. As they exist then, each insert is an update by
 * the primary key; an update that joins them may read the whole index of it.
 */
const UPDATE_LOCKED = `
  insert into login_throttle as t (email_hash, address_hash, failures, last_failure_at)
  select l.email_hash, l.address_hash, l.failures, l.last_failure_at
  from (values ${keysOf('$emailHash')}) k (email_hash, address_hash)
  cross join lateral (
    select * from login_throttle f where f.email_hash = k.email_hash and f.address_hash = k.address_hash
    offset 0 for update) l
  on conflict (email_hash, address_hash) do update`

/**
 * Reverts an attempt counted at `countedAt` that was correct, with the last statement of the transaction. Pair and
 * e-mail address are cleared. The network address loses this one failure and its wait; clearing it would let an
 * attacker with one known account reset it. A later wait by other failures stays.
 */
export const takeBackFailure = closingStatement<ThrottleKey & { countedAt: Date }>(`
  forgiven_attempt as (
    ${UPDATE_LOCKED}
    set failures = case when t.email_hash = '' then greatest(0, t.failures - 1) else 0 end,
      last_failure_at = case when t.email_hash = '' then t.last_failure_at else $countedAt end,
      wait_until = case when t.email_hash = '' and t.last_failure_at > $countedAt then t.wait_until end,
      turn_at = case when t.email_hash = '' then t.turn_at end)`)

/** Reverts an attempt counted at `countedAt` whose password was not checked. Earlier failures stay. */
export const takeBackAttempt = statement<never, ThrottleKey & { countedAt: Date }>(`
  ${UPDATE_LOCKED}
  set failures = greatest(0, t.failures - 1),
    wait_until = case when t.last_failure_at > $countedAt then t.wait_until end`)

/** Deletes the rows of e-mail addresses, also of their pairs, locked in the order in which attempts lock them. */
export const deleteThrottlesOfEmails = closingStatement<{ emailHashes: readonly Buffer[] }>(`
  forgotten_emails as (
    delete from login_throttle where email_hash = any($emailHashes) and (email_hash, address_hash) in (
      select email_hash, address_hash from login_throttle where email_hash = any($emailHashes)
      order by email_hash, address_hash for update))`)

/** Deletes up to `limit` subjects whose last failure was before `before`. Returns their number. For maintenance. */
export const deleteForgottenThrottles = deletionOfOld('login_throttle', { key: 'ctid', time: 'last_failure_at' })

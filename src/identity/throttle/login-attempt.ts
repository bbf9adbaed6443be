import type { UserId } from '../../base/id.ts'
import { groupAddress } from '../../http/request/address-group.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  deleteThrottlesOfEmails,
  lockAttempt,
  type NamedUser,
  type ThrottleKey,
  takeBackAttempt,
  takeBackFailure,
  writeThrottles,
} from './login-throttle.store.ts'
import { decideAttempt, decideFactorAttempt, hashSubject } from './login-throttle.ts'

/** The e-mail address, network address and time of a sign-in attempt. */
export interface LoginAttempt {
  email: string
  address: string
  now: Date
}

/** The user, network address and time of an attempt of a known user: with a password, or with a second factor. */
export interface UserAttempt {
  userId: UserId
  address: string
  now: Date
}

const buildKey = (kind: 'email' | 'user' | 'factor', value: string, address: string): ThrottleKey => ({
  emailHash: hashSubject(kind, value),
  addressHash: hashSubject('address', groupAddress(address)),
})
const userKeyOf = ({ userId, address }: UserAttempt) => buildKey('user', userId, address)
const factorKeyOf = ({ userId, address }: UserAttempt) => buildKey('factor', userId, address)

/** Outcome of a counted attempt: it must wait, or its password is checked against that of the matching user, if any. */
export type ChargedAttempt = { kind: 'waits'; until: Date } | ({ kind: 'made'; key: ThrottleKey } & NamedUser)

/**
 * Counts an attempt as failed before its password is checked. When the attempt must wait, returns the end of the wait
 * and counts nothing. Two round trips; a waiting attempt that already has its turn writes nothing.
 */
export function chargeAttempt(db: Database, attempt: LoginAttempt): Promise<ChargedAttempt> {
  const { email, address, now } = attempt
  return inTransaction(db, async (tx) => {
    const { key, states, credentials, hasFactor } = await lockAttempt(tx, {
      key: buildKey('email', email, address),
      email,
      now,
    })
    const decision = decideAttempt(states, now)
    await writeThrottles(tx, key, decision.states)
    if (decision.kind === 'waits') return { kind: 'waits', until: decision.until }
    return { kind: 'made', key, credentials, hasFactor }
  })
}

/** As `chargeAttempt`, for the password of a signed-in user. Returns the end of the wait; undefined when counted. */
export function chargeOwnAttempt(db: Database, attempt: UserAttempt): Promise<Date | undefined> {
  return chargeKnown(db, { key: userKeyOf(attempt), now: attempt.now, decide: decideAttempt })
}

/** As `chargeOwnAttempt`, for a code of a second factor. */
export function chargeFactorAttempt(db: Database, attempt: UserAttempt): Promise<Date | undefined> {
  return chargeKnown(db, { key: factorKeyOf(attempt), now: attempt.now, decide: decideFactorAttempt })
}

function chargeKnown(
  db: Database,
  { key, now, decide }: { key: ThrottleKey; now: Date; decide: typeof decideAttempt },
): Promise<Date | undefined> {
  return inTransaction(db, async (tx) => {
    const { states } = await lockAttempt(tx, { key, email: null, now })
    const decision = decide(states, now)
    await writeThrottles(tx, key, decision.states)
    return decision.kind === 'waits' ? decision.until : undefined
  })
}

/** Reverts the count of an attempt whose password was not checked for lack of a place. */
export async function dropAttempt(db: Database, { key }: { key: ThrottleKey }, now: Date): Promise<void> {
  await takeBackAttempt(db, { ...key, countedAt: now })
}

/** Reverts the count of an attempt with a correct password, with the statement that records its session. */
export function forgiveAttempt(tx: Database, attempt: UserAttempt): Promise<void> {
  return takeBackFailure(tx, { ...userKeyOf(attempt), countedAt: attempt.now })
}

/** As `forgiveAttempt`, for a code of a second factor. */
export function forgiveFactorAttempt(tx: Database, attempt: UserAttempt): Promise<void> {
  return takeBackFailure(tx, { ...factorKeyOf(attempt), countedAt: attempt.now })
}

/**
 * Clears the failed sign-ins of a user, from every network address, so that the next attempt does not wait. For a reset by
 * an administrator, by the command, or by a proven link. Failures of network addresses stay. With the last statement of the
 * transaction.
 */
export async function clearLoginThrottle(db: Database, userId: UserId): Promise<void> {
  await deleteThrottlesOfEmails(db, { emailHashes: [hashSubject('user', userId)] })
}

/** Clears the failed codes of a user, as `clearLoginThrottle` does. For an administrator who removes its factors. */
export async function clearFactorThrottle(db: Database, userId: UserId): Promise<void> {
  await deleteThrottlesOfEmails(db, { emailHashes: [hashSubject('factor', userId)] })
}

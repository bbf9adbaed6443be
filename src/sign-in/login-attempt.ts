import { groupAddress } from '../http/address-group.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import type { Credentials } from '../user/user.store.ts'
import {
  deleteThrottlesOfEmails,
  lockAttempt,
  type ThrottleKey,
  takeBackFailure,
  writeThrottles,
} from './login-throttle.store.ts'
import { decideAttempt, hashSubject } from './login-throttle.ts'

/** The e-mail address, network address and time of a sign-in attempt. */
export interface LoginAttempt {
  email: string
  address: string
  now: Date
}

function keyOf({ email, address }: LoginAttempt): ThrottleKey {
  return { emailHash: hashSubject('email', email), addressHash: hashSubject('address', groupAddress(address)) }
}

/** What comes of a counted attempt: it waits, or its password is checked against those of the user that it names, if any. */
export type ChargedAttempt = { kind: 'waits'; until: Date } | { kind: 'made'; credentials: Credentials | undefined }

/**
 * Counts an attempt as failed before its password is checked. When the attempt has to wait, returns until when and counts
 * nothing. Two round trips; an attempt that waits and has its turn already writes nothing.
 */
export function chargeAttempt(db: Database, attempt: LoginAttempt): Promise<ChargedAttempt> {
  const key = keyOf(attempt)
  const { email, now } = attempt
  return inTransaction(db, async (tx) => {
    const { states, credentials } = await lockAttempt(tx, { key, email, now })
    const decision = decideAttempt(states, now)
    await writeThrottles(tx, key, decision.states)
    return decision.kind === 'waits' ? { kind: 'waits', until: decision.until } : { kind: 'made', credentials }
  })
}

/** Takes back the count of an attempt whose password was correct, with the statement that records its session. */
export function forgiveAttempt(tx: Database, attempt: LoginAttempt): Promise<void> {
  return takeBackFailure(tx, keyOf(attempt), attempt.now)
}

/**
 * Clears the failed sign-ins of e-mail addresses, from every network address, so that the next attempt does not wait. For
 * a reset by an administrator, by the command, or by a proven link. Failures of network addresses stay. With the last
 * statement of the transaction.
 */
export async function clearLoginThrottle(db: Database, ...emails: string[]): Promise<void> {
  await deleteThrottlesOfEmails(
    db,
    emails.map((email) => hashSubject('email', email)),
  )
}

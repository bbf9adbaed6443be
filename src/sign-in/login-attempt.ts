import { groupAddress } from '../http/address-group.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { markAhead, markLast } from '../postgres/dialect.ts'
import { deleteThrottlesOfEmails, lockThrottles, type ThrottleKey, writeThrottles } from './login-throttle.store.ts'
import { decideAttempt, hashSubject, takeBackFailure } from './login-throttle.ts'

/** The e-mail address, network address and time of a sign-in attempt. */
export interface LoginAttempt {
  email: string
  address: string
  now: Date
}

function keyOf({ email, address }: LoginAttempt): ThrottleKey {
  return { emailHash: hashSubject('email', email), addressHash: hashSubject('address', groupAddress(address)) }
}

/**
 * Counts an attempt as failed before its password is checked. When the attempt has to wait, returns until when and counts
 * nothing. Two round trips; an attempt that waits and has its turn already writes nothing.
 */
export function chargeAttempt(db: Database, attempt: LoginAttempt): Promise<Date | undefined> {
  const key = keyOf(attempt)
  return inTransaction(db, async (tx) => {
    const decision = decideAttempt(await lockThrottles(tx, key, attempt.now), attempt.now)
    await writeThrottles(tx, { key, states: decision.states, mark: markLast })
    return decision.kind === 'waits' ? decision.until : undefined
  })
}

/** Reverts the count of an attempt whose password was correct, in the transaction of its session. */
export async function forgiveAttempt(tx: Database, attempt: LoginAttempt): Promise<void> {
  const key = keyOf(attempt)
  const states = await lockThrottles(tx, key, attempt.now)
  await writeThrottles(tx, { key, states: takeBackFailure(states, attempt.now), mark: markAhead })
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

import { groupAddress } from '../http/address-group.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { markAhead, markLast } from '../postgres/dialect.ts'
import { deleteThrottlesOfEmail, lockThrottles, type ThrottleKey, writeThrottles } from './login-throttle.store.ts'
import { decideAttempt, hashSubject, takeBackFailure } from './login-throttle.ts'

/** Who tries to sign in, from where, and when. */
export interface LoginAttempt {
  email: string
  address: string
  now: Date
}

function keyOf({ email, address }: LoginAttempt): ThrottleKey {
  return { emailHash: hashSubject('email', email), addressHash: hashSubject('address', groupAddress(address)) }
}

/**
 * Counts an attempt as failed before its password is looked at. Returns until when it has to wait instead, in which case
 * nothing is counted. Two round trips; an attempt that waits and has its turn already writes nothing.
 */
export function chargeAttempt(db: Database, attempt: LoginAttempt): Promise<Date | undefined> {
  const key = keyOf(attempt)
  return inTransaction(db, async (tx) => {
    const decision = decideAttempt(await lockThrottles(tx, key, attempt.now), attempt.now)
    await writeThrottles(tx, { key, states: decision.states, mark: markLast })
    return decision.kind === 'waits' ? decision.until : undefined
  })
}

/** Takes back the count of an attempt whose password was right, in the transaction of its session. */
export async function forgiveAttempt(tx: Database, attempt: LoginAttempt): Promise<void> {
  const key = keyOf(attempt)
  const states = await lockThrottles(tx, key, attempt.now)
  await writeThrottles(tx, { key, states: takeBackFailure(states, attempt.now), mark: markAhead })
}

/**
 * Forgets the failed sign-ins of an e-mail address, from every network address, so that its next attempt does not wait for
 * them. For a reset by an administrator, by the command, or by a proven link. Failures of network addresses stay.
 */
export async function clearLoginThrottle(db: Database, email: string): Promise<void> {
  await deleteThrottlesOfEmail(db, hashSubject('email', email))
}

import { groupAddress } from '../http/address-group.ts'
import { Problem } from '../http/problem.ts'
import type { UserId } from '../id.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import type { SessionDeps } from '../session/session.ts'
import { type Credentials, findCredentials, lockPasswordHash, updateUser } from '../user/user.store.ts'
import { deleteThrottle, insertMissingThrottles, lockThrottles, updateThrottle } from './login-throttle.store.ts'
import { ADDRESS_RULE, countFailure, EMAIL_RULE, findWait, hashSubject, takeBackFailure } from './login-throttle.ts'
import { hashPassword, isHashStale, isPasswordCorrect } from './password.ts'
import { type SignIn, signIn } from './sign-in.ts'

/** A sign-in with e-mail and password, and where it comes from. */
export interface LocalLogin {
  email: string
  password: string
  address: string
  userAgent: string | null
  now: Date
}

/** Why a sign-in was refused. For the log and the audit trail only: the caller reads one sentence for all of them. */
type LoginRefusal = 'unknown_email' | 'no_password' | 'wrong_password' | 'disabled'

/** What the password of a sign-in came to, before a session is opened. */
export type CheckedLogin =
  | { kind: 'throttled'; until: Date }
  | { kind: 'refused'; reason: LoginRefusal; userId: UserId | null }
  | { kind: 'correct'; credentials: Credentials; freshHash: string | undefined }

/** A refused sign-in: what the caller reads, and whom it named. */
export interface RefusedLogin {
  problem: Problem
  userId: UserId | null
}

/**
 * Checks the password of a sign-in (docs/contract/sessions.md#local-sign-in). An unknown address, a wrong password and a
 * disabled user look the same and cost the same: one Argon2id. The attempt is counted as failed before the password is
 * looked at; a subject over its rule has to wait, known or not. Runs outside any transaction: hashing takes some 40 ms.
 */
export async function checkLocalLogin(deps: SessionDeps, db: Database, login: LocalLogin): Promise<CheckedLogin> {
  const until = await chargeAttempt(db, login)
  if (until) return { kind: 'throttled', until }
  const credentials = await findCredentials(db, login.email)
  const isCorrect = await isPasswordCorrect(login.password, credentials?.passwordHash ?? null)
  if (!isCorrect || !credentials?.passwordHash || !credentials.user.isActived)
    return { kind: 'refused', reason: findReason(credentials, isCorrect), userId: credentials?.user.id ?? null }
  const isStale = isHashStale(credentials.passwordHash)
  const freshHash = isStale ? await hashPassword(login.password, deps.random) : undefined
  return { kind: 'correct', credentials, freshHash }
}

/** Opens the session of a checked sign-in, in the caller's transaction, or says why not. */
export async function logInLocally(
  deps: SessionDeps,
  tx: Database,
  input: { login: LocalLogin; checked: CheckedLogin },
): Promise<SignIn | RefusedLogin> {
  const { login, checked } = input
  switch (checked.kind) {
    case 'throttled':
      return { problem: buildThrottled(checked.until, login.now), userId: null }
    case 'refused':
      return { problem: buildFailed(checked.reason), userId: checked.userId }
    case 'correct': {
      const userId = checked.credentials.user.id
      return (await openSession(deps, tx, { login, ...checked })) ?? { problem: buildFailed('disabled'), userId }
    }
  }
}

function buildFailed(reason: LoginRefusal): Problem {
  return new Problem('login_failed', 'The e-mail address or the password is wrong.', {
    reason,
    headers: { 'www-authenticate': 'Bearer' },
  })
}

function findReason(credentials: Credentials | undefined, isCorrect: boolean): LoginRefusal {
  if (!credentials) return 'unknown_email'
  if (credentials.passwordHash === null) return 'no_password'
  return isCorrect ? 'disabled' : 'wrong_password'
}

function listSubjects(login: LocalLogin) {
  return [
    { hash: hashSubject('email', login.email), rule: EMAIL_RULE, kind: 'email' as const },
    { hash: hashSubject('address', groupAddress(login.address)), rule: ADDRESS_RULE, kind: 'address' as const },
  ]
}

/** Counts the attempt as failed before it is looked at, or says until when to wait; then nothing is counted. */
function chargeAttempt(db: Database, login: LocalLogin): Promise<Date | undefined> {
  const subjects = listSubjects(login)
  const hashes = subjects.map(({ hash }) => hash)
  return inTransaction(db, async (tx) => {
    await insertMissingThrottles(tx, hashes, login.now)
    const states = await lockThrottles(tx, hashes)
    const waits = states.map((state) => findWait(state, login.now)).filter((until) => until !== undefined)
    if (waits.length > 0) return new Date(Math.max(...waits.map((until) => until.getTime())))
    for (const { hash, rule } of subjects) {
      const state = states.find(({ subjectHash }) => subjectHash.equals(hash))
      await updateThrottle(tx, hash, countFailure(state, rule, login.now))
    }
    return undefined
  })
}

/** A right password clears its e-mail address. Of the network address only this attempt: else one known account would clear it. */
async function forgiveAttempt(tx: Database, login: LocalLogin): Promise<void> {
  const subjects = listSubjects(login)
  const states = await lockThrottles(
    tx,
    subjects.map(({ hash }) => hash),
  )
  for (const { hash, rule, kind } of subjects) {
    const state = states.find(({ subjectHash }) => subjectHash.equals(hash))
    if (kind === 'email') await deleteThrottle(tx, hash)
    else if (state) await updateThrottle(tx, hash, takeBackFailure(state, rule, login.now))
  }
}

/**
 * Opens the session of a right password. Undefined when the user was disabled, or the password was changed, since it was
 * looked at: a session must not survive either.
 */
async function openSession(
  deps: SessionDeps,
  tx: Database,
  input: { login: LocalLogin; credentials: Credentials; freshHash: string | undefined },
): Promise<SignIn | undefined> {
  const { login, credentials, freshHash } = input
  const { address, userAgent, now } = login
  const { user, passwordHash } = credentials
  if (passwordHash === null || !(await lockPasswordHash(tx, user.id, passwordHash))) return undefined
  const origin = { address, userAgent }
  const signedIn = await signIn(deps, tx, { user, origin, isNewUser: false, redirectUrl: null, now })
  if (!signedIn) return undefined
  if (freshHash) await updateUser(tx, user.id, { passwordHash: freshHash, now })
  await forgiveAttempt(tx, login)
  return signedIn
}

function buildThrottled(until: Date, now: Date): Problem {
  const seconds = Math.ceil((until.getTime() - now.getTime()) / 1000)
  return new Problem('rate_limited', `Too many failed sign-ins. Try again in ${seconds} s.`, {
    headers: { 'retry-after': String(seconds) },
    reason: 'throttled',
  })
}

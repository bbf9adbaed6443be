import type { UserId } from '../../../base/id.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { PasswordDeps, PasswordHashing } from '../../password/password.ts'
import type { SessionDeps } from '../../session/session.ts'
import { lockUser } from '../../session/session-proof.ts'
import { chargeAttempt, dropAttempt, forgiveAttempt } from '../../throttle/login-attempt.ts'
import { buildThrottled } from '../../throttle/login-problem.ts'
import { type Credentials, updateUser } from '../../user-record/user.store.ts'
import { type RefusedSignIn, type SignIn, signIn } from '../outcome/sign-in.ts'
import { buildFactorRequired, type OpenStep, openSecondStep } from '../second-factor/factor-login.ts'
import { findPresentPassword } from '../second-factor/second-factor.store.ts'

/** A sign-in with e-mail and password, and its origin. */
export interface LocalLogin {
  email: string
  password: string
  address: string
  userAgent: string | null
  now: Date
}

/** The reason of a refused sign-in. For the log and the audit trail only: the caller gets one text for all of them. */
type LoginRefusal = 'unknown_email' | 'no_password' | 'wrong_password' | 'disabled'

/** The result of the password check, before a session is opened. */
export type CheckedLogin =
  | { kind: 'throttled'; until: Date }
  | { kind: 'refused'; reason: LoginRefusal; userId: UserId | null }
  | { kind: 'correct'; credentials: Credentials; hasFactor: boolean; freshHash: string | undefined }

/** A refused sign-in: the problem for the caller, and the user it named. */
export interface RefusedLogin extends RefusedSignIn {
  secondStep?: OpenStep
}

/**
 * Checks the password of a sign-in (docs/contract/sessions.md#local-sign-in). An unknown address, a wrong password and a
 * disabled user get the same answer at the same cost: one Argon2id. Failures are counted by login-throttle.ts, before the
 * password is checked, for known and unknown e-mail addresses alike. Runs outside any transaction: hashing takes time.
 */
export async function checkLocalLogin(
  { passwords }: PasswordDeps,
  db: Database,
  login: LocalLogin,
): Promise<CheckedLogin> {
  const charged = await chargeAttempt(db, login)
  if (charged.kind === 'waits') return { kind: 'throttled', until: charged.until }
  const { credentials, hasFactor } = charged
  const isCorrect = await lookAtPassword(passwords, login, credentials).catch(async (error: unknown) => {
    // Not admitted: the password was not checked, so a flood does not count against this user.
    if (isOverloaded(error)) await dropAttempt(db, charged, login.now)
    throw error
  })
  if (!isCorrect || !credentials?.passwordHash || !credentials.user.isActived)
    return { kind: 'refused', reason: findReason(credentials, isCorrect), userId: credentials?.user.id ?? null }
  const isStale = passwords.isStale(credentials.passwordHash)
  const freshHash = isStale ? await hashAgain(passwords, login.password) : undefined
  return { kind: 'correct', credentials, hasFactor, freshHash }
}

const isOverloaded = (error: unknown) => error instanceof Problem && error.code === 'overloaded'

async function lookAtPassword(
  passwords: PasswordHashing,
  { password, now }: LocalLogin,
  credentials: Credentials | undefined,
): Promise<boolean> {
  // Everything of a deleted user is revoked.
  passwords.judgePlace(credentials ? credentials.accessEndedAt : now)
  return await passwords.isCorrect(password, credentials?.passwordHash ?? null)
}

/** The hash at the present cost; undefined without a place for it, so that a later sign-in replaces it. */
async function hashAgain(passwords: PasswordHashing, password: string): Promise<string | undefined> {
  try {
    return await passwords.hash(password)
  } catch (error) {
    if (isOverloaded(error)) return undefined
    throw error
  }
}

/** Opens the session of a checked sign-in, or returns the refusal (or second step), which the caller commits. */
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

/** Opens the session, or the second step. Undefined when the user or the password changed since the check. */
async function openSession(
  deps: SessionDeps,
  tx: Database,
  input: { login: LocalLogin; credentials: Credentials; hasFactor: boolean; freshHash: string | undefined },
): Promise<SignIn | RefusedLogin | undefined> {
  const { login, credentials, hasFactor, freshHash } = input
  const { address, userAgent, now } = login
  const { user, passwordHash } = credentials
  if (passwordHash === null) return undefined
  const attempt = { userId: user.id, address, now }
  const step = { userId: user.id, passwordHash: freshHash ?? passwordHash, address, now }
  const secondStep = hasFactor ? await openSecondStep(deps, tx, step) : undefined
  if (secondStep) {
    if (freshHash) await replaceStaleHash(tx, { userId: user.id, passwordHash, freshHash, now })
    await forgiveAttempt(tx, attempt)
    return { problem: buildFactorRequired(secondStep), userId: user.id, secondStep }
  }
  const signedIn = await signIn(deps, tx, {
    user,
    passwordHash,
    origin: { address, userAgent },
    amr: ['pwd'],
    isNewUser: false,
    redirectUrl: null,
    now,
  })
  if (!signedIn) return undefined
  if (freshHash) await updateUser(tx, user.id, { passwordHash: freshHash, now })
  await forgiveAttempt(tx, attempt)
  return signedIn
}

/** Replaces a hash of another cost, unless the password was changed since the check. */
async function replaceStaleHash(
  tx: Database,
  input: { userId: UserId; passwordHash: string; freshHash: string; now: Date },
): Promise<void> {
  const { userId, passwordHash, freshHash, now } = input
  await lockUser(tx, { userId })
  if ((await findPresentPassword(tx, { userId }))?.passwordHash !== passwordHash) return
  await updateUser(tx, userId, { passwordHash: freshHash, now })
}

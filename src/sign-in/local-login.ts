import { recordAudit } from '../audit/audit.ts'
import { Problem } from '../http/problem.ts'
import type { UserId } from '../id.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import type { EmitSession, SessionDeps } from '../session/session.ts'
import { type Credentials, findCredentials, lockPasswordHash, updateUser } from '../user/user.store.ts'
import { chargeAttempt, forgiveAttempt } from './login-attempt.ts'
import { hashPassword, isHashStale, isPasswordCorrect } from './password.ts'
import { type SignIn, signIn } from './sign-in.ts'

/** A sign-in with e-mail and password, and where it comes from. */
export interface LocalLogin {
  email: string
  password: string
  address: string
  userAgent: string | null
  requestId: string
  now: Date
  emit: EmitSession
}

/** Why a sign-in was refused. For the log and the audit trail only: the caller learns one sentence for all of them. */
type LoginRefusal = 'unknown_email' | 'no_password' | 'wrong_password' | 'disabled'

/**
 * Signs a person in with e-mail and password (D29). An unknown address, a wrong password and a disabled user look the same
 * and cost the same: one Argon2id. Failures are counted as login-throttle.ts says; an attempt over a rule waits, whether
 * its e-mail address is known or not, and its password is not looked at.
 *
 * Its steps are transactions of their own, since a refusal keeps what it wrote: `db` must not be a transaction.
 * Throws 401 `login_failed`, or 429 `rate_limited` with `Retry-After`.
 */
export async function logInLocally(deps: SessionDeps, db: Database, login: LocalLogin): Promise<SignIn> {
  const waitUntil = await chargeAttempt(db, login)
  if (waitUntil) {
    await auditRefusal(deps, db, login, { reason: 'throttled', userId: null })
    throw buildThrottled(waitUntil, login.now)
  }
  const credentials = await findCredentials(db, login.email)
  const isCorrect = await isPasswordCorrect(login.password, credentials?.passwordHash ?? null)
  const signedIn = isCorrect && credentials && (await openSession(deps, db, { login, credentials }))
  if (signedIn) return signedIn
  const reason = findReason(credentials, isCorrect)
  await auditRefusal(deps, db, login, { reason, userId: credentials?.user.id ?? null })
  throw new Problem('login_failed', 'The e-mail address or the password is wrong.', {
    reason,
    headers: { 'www-authenticate': 'Bearer' },
  })
}

function findReason(credentials: Credentials | undefined, isCorrect: boolean): LoginRefusal {
  if (!credentials) return 'unknown_email'
  if (credentials.passwordHash === null) return 'no_password'
  return isCorrect ? 'disabled' : 'wrong_password'
}

/**
 * Opens the session of a right password. Undefined when the user is disabled, or when the password has changed since it was
 * looked at: a session must not survive either.
 */
async function openSession(
  deps: SessionDeps,
  db: Database,
  input: { login: LocalLogin; credentials: Credentials },
): Promise<SignIn | undefined> {
  const { login, credentials } = input
  const { address, userAgent, requestId, now } = login
  const { user, passwordHash } = credentials
  if (passwordHash === null || !user.isActived) return undefined
  const freshHash = isHashStale(passwordHash) ? await hashPassword(login.password, deps.random) : undefined
  return inTransaction(db, async (tx) => {
    if (!(await lockPasswordHash(tx, user.id, passwordHash))) return undefined
    const origin = { address, userAgent }
    const signedIn = await signIn(deps, tx, { user, origin, isNewUser: false, redirectUrl: null, now })
    if (!signedIn) return undefined
    if (freshHash) await updateUser(tx, user.id, { passwordHash: freshHash, now })
    await forgiveAttempt(tx, login)
    const { sessionId, account } = signedIn.issued
    const subject = { userId: user.id, sessionId, account: account?.id ?? null, target: sessionId }
    const entry = { action: 'login.local', outcome: 'success' as const, ...subject, address, requestId }
    await recordAudit(tx, { ids: deps.ids, now }, entry)
    await login.emit(tx, [{ id: sessionId, account: null }])
    return signedIn
  })
}

/** The address that was typed is left out: people type passwords into that field too. */
function auditRefusal(
  deps: SessionDeps,
  db: Database,
  login: LocalLogin,
  refusal: { reason: LoginRefusal | 'throttled'; userId: UserId | null },
): Promise<void> {
  return recordAudit(
    db,
    { ids: deps.ids, now: login.now },
    {
      action: 'login.local',
      outcome: 'failure',
      userId: refusal.userId,
      target: refusal.userId,
      address: login.address,
      requestId: login.requestId,
      detail: { reason: refusal.reason },
    },
  )
}

function buildThrottled(until: Date, now: Date): Problem {
  const seconds = Math.ceil((until.getTime() - now.getTime()) / 1000)
  return new Problem('rate_limited', `Too many failed sign-ins. Try again in ${seconds} s.`, {
    headers: { 'retry-after': String(seconds) },
    reason: 'login_throttled',
  })
}

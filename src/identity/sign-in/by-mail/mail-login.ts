import { createHash, timingSafeEqual } from 'node:crypto'
import type { UserId } from '../../../base/id.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { Random } from '../../../base/random.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { AddressProof } from '../../address-proof/address-proof.store.ts'
import {
  endMailLogins,
  findMailLoginOf,
  findProof,
  findProofGoal,
  isAskingBrowser,
  keepMailLogin,
  lockMailLogin,
  type ProofGoal,
  type ProofOrigin,
} from '../../address-proof/address-proof.ts'
import { writeMail } from '../../mail/outbox.ts'
import type { SessionOrigin } from '../../session/session.ts'
import { chargeAttempt, forgiveAttempt } from '../../throttle/login-attempt.ts'
import { buildThrottled } from '../../throttle/login-problem.ts'
import { proveAddress } from '../../user/invited-user.ts'
import type { LinkDeps } from '../../user/password/password-reset.ts'
import { buildLinkInvalid, createProofToken } from '../../user/proof/proof-token.ts'
import { findUserOfAddress } from '../../user/user.ts'
import type { UserRecord } from '../../user-record/user.store.ts'
import { type RefusedSignIn, type SignIn, signIn } from '../outcome/sign-in.ts'
import { buildFactorRequired, type OpenStep, openSecondStep } from '../second-factor/factor-login.ts'
import { findPresentPassword } from '../second-factor/second-factor.store.ts'
import type { FactorDeps } from '../second-factor/second-factor.ts'
import { buildMailLoginMail } from './mail-login-text.ts'

/** Lifetime of the link and the code of a sign-in by mail. */
export const MAIL_LOGIN_LIFETIME_MS = 10 * 60_000

/** Maximum number of attempts with the code of one mail. */
export const CODE_ATTEMPTS = 5

const CODE_DIGITS = 8

/** The page of the link of a sign-in by mail. */
export const MAIL_LOGIN_LINK = '/auth/sign-in/mail/link'

/** Dependencies of a sign-in by mail. */
export interface MailLoginDeps extends LinkDeps, FactorDeps {
  keyring: LinkDeps['keyring'] & FactorDeps['keyring']
  /** `SIGN_IN_BY_MAIL`. */
  signInByMail: boolean
}

/** Outcome of a request for a mail. For the audit log only: the caller gets one answer for all of them. */
export type MailLoginResult = 'sent' | 'unknown' | 'too_many'

/** Checks that users may sign in by mail. Throws 403 `sign_in_by_mail_off`. */
export function checkMailLoginOn({ signInByMail }: Pick<MailLoginDeps, 'signInByMail'>): void {
  if (signInByMail) return
  throw new Problem('sign_in_by_mail_off', 'Sign-in by mail is switched off here. Sign in another way.', {
    reason: 'SIGN_IN_BY_MAIL is not set',
  })
}

/** A code of decimal digits. The remainder of 64 bits differs from an even distribution by less than one in 10^11. */
function createCode(random: Random): string {
  return String(random.bytes(8).readBigUInt64BE() % 10n ** BigInt(CODE_DIGITS)).padStart(CODE_DIGITS, '0')
}

/** The hash of a code with the id of its client, which is random and kept as a hash too: it cannot be searched. */
function hashCode(login: string, code: string): Buffer {
  return createHash('sha256').update(`${login} ${code}`).digest()
}

/**
 * Begins a sign-in by mail (docs/contract/sessions.md#sign-in-by-mail), in the caller's transaction, and returns the id that
 * only the asking client holds. Every address costs the same statements, whether it gets a mail or not. Throws 403
 * `sign_in_by_mail_off` and 429 or 503 beyond the limits.
 */
export async function requestMailLogin(
  deps: MailLoginDeps,
  tx: Database,
  input: { email: string; origin: ProofOrigin; texts: Texts; now: Date },
): Promise<{ login: string; result: MailLoginResult; userId: UserId | null }> {
  const { email, origin, texts, now } = input
  checkMailLoginOn(deps)
  const [link, client] = [createProofToken(deps.random), createProofToken(deps.random)]
  const code = createCode(deps.random)
  const expiresAt = new Date(now.getTime() + MAIL_LOGIN_LIFETIME_MS)
  const { isKept, userId, to } = await keepMailLogin(tx, {
    tokenHash: link.tokenHash,
    email,
    loginHash: client.tokenHash,
    codeHash: hashCode(client.token, code),
    origin,
    expiresAt,
    now,
  })
  const result = !isKept ? 'too_many' : userId === null ? 'unknown' : 'sent'
  const content = buildMailLoginMail({
    texts,
    code,
    link: origin.browser && `${deps.baseUrl()}${MAIL_LOGIN_LINK}?token=${link.token}`,
    serviceName: deps.serviceName,
  })
  const isReal = result === 'sent'
  await writeMail(deps, tx, { kind: 'sign-in', to: to ?? email, content, expiresAt, isReal, now })
  return { login: client.token, result, userId }
}

/** A sign-in by the link of a mail, or by its code with the id of the client that asked. */
export interface MailLogin {
  by: { kind: 'link'; token: string } | { kind: 'code'; login: string; code: string }
  /** The id of the browser, of a page. */
  browserId?: string | undefined
  origin: SessionOrigin & { address: string }
  now: Date
}

/** Reason of a refused sign-in by mail. For the log and the audit log only: the answer is the same for all. */
type MailLoginRefusal = 'unknown_used_or_expired' | 'other_browser' | 'exhausted' | 'wrong_code' | 'disabled'

/** An attempt that may be made, or the reason of a refusal. */
export type CheckedMailLogin =
  | { kind: 'throttled'; until: Date }
  | { kind: 'refused'; reason: MailLoginRefusal }
  | { kind: 'charged' }

/** A refused sign-in by mail: the problem for the caller, and the user that it is for. */
export interface RefusedMailLogin extends RefusedSignIn {
  /** The second step of a user with a second factor, and the goal of the browser after it. */
  secondStep?: OpenStep
  goal?: ProofGoal
}

/** The goal of the sign-in by mail that this browser asked for, for the page of its link. Spends nothing. */
export async function findMailLinkGoal(
  db: Database,
  { token, browserId, now }: { token: string; browserId: string; now: Date },
): Promise<ProofGoal> {
  const proof = await findProof(db, { token, purpose: 'sign-in', now })
  return proof ? findProofGoal(proof, browserId) : {}
}

/**
 * Counts a code as a failed sign-in with its address before it is compared (docs/contract/sessions.md#sign-in-throttle),
 * whether a user has the address or not. A link cannot be guessed and is not counted. Runs outside any transaction, so that
 * concurrent attempts see each other's counts. Throws 403 `sign_in_by_mail_off`.
 */
export async function checkMailLogin(
  deps: Pick<MailLoginDeps, 'signInByMail'>,
  db: Database,
  { by, browserId, origin, now }: MailLogin,
): Promise<CheckedMailLogin> {
  checkMailLoginOn(deps)
  if (by.kind === 'link') return { kind: 'charged' }
  const proof = await findMailLoginOf(db, { login: by.login, now })
  if (!proof) return { kind: 'refused', reason: 'unknown_used_or_expired' }
  if (!isAskingBrowser(proof, browserId)) return { kind: 'refused', reason: 'other_browser' }
  const charged = await chargeAttempt(db, { email: proof.email, address: origin.address, now })
  return charged.kind === 'waits' ? { kind: 'throttled', until: charged.until } : { kind: 'charged' }
}

/**
 * Signs in by a link or a code, in the caller's transaction: opens the session and spends every open mail of the user,
 * or returns the refusal, which the caller commits. For a user with a second factor the refusal holds the second step.
 * The lock of the user serializes concurrent uses.
 */
export async function logInByMail(
  deps: MailLoginDeps,
  tx: Database,
  { login, checked }: { login: MailLogin; checked: CheckedMailLogin },
): Promise<(SignIn & { goal: ProofGoal }) | RefusedMailLogin> {
  const { by, browserId, now } = login
  if (checked.kind === 'throttled') return { problem: buildThrottled(checked.until, now), userId: null }
  const refuse = (reason: string, userId: UserId | null) => ({ problem: buildRefusal(by.kind, reason), userId })
  if (checked.kind === 'refused') return refuse(checked.reason, null)
  const proof = await lockMailLogin(tx, by, now)
  if (!proof) return refuse('unknown_used_or_expired', null)
  const reason = findRefusal(proof, login)
  if (reason) return refuse(reason, proof.userId)
  // The address may have moved to another user since.
  const user = await findUserOfAddress(tx, { email: proof.email })
  if (!user || user.id !== proof.userId) return refuse('disabled', proof.userId)
  const opened = await openSession(deps, tx, { login, proof, user })
  if (!opened) return refuse('disabled', user.id)
  const goal = findProofGoal(proof, browserId)
  await endMailLogins(tx, { userId: user.id })
  await proveAddress(tx, { userId: user.id, now })
  if (by.kind === 'code') await forgiveAttempt(tx, { userId: user.id, address: login.origin.address, now })
  if ('challenge' in opened)
    return { problem: buildFactorRequired(opened, 'mail'), userId: user.id, secondStep: opened, goal }
  return { ...opened, goal }
}

/** The reason for which an attempt is refused; undefined when it is not. Pure. */
function findRefusal(proof: AddressProof, { by, browserId }: MailLogin): MailLoginRefusal | undefined {
  if (!isAskingBrowser(proof, browserId)) return 'other_browser'
  if (by.kind === 'link') return undefined
  if (proof.attempts > CODE_ATTEMPTS) return 'exhausted'
  const typed = hashCode(by.login, by.code.replace(/[\s-]/g, ''))
  return proof.codeHash && timingSafeEqual(typed, proof.codeHash) ? undefined : 'wrong_code'
}

/** Opens the session, or the second step. Undefined when the access of the user was revoked since the mail was asked for. */
async function openSession(
  deps: MailLoginDeps,
  tx: Database,
  { login, proof, user }: { login: MailLogin; proof: AddressProof; user: UserRecord },
): Promise<SignIn | OpenStep | undefined> {
  const { origin, now } = login
  const present = await findPresentPassword(tx, { userId: user.id })
  if (!present) return undefined
  const step = { userId: user.id, ...present, first: 'mail' as const, address: origin.address, now }
  const secondStep = await openSecondStep(deps, tx, step)
  if (secondStep) return secondStep
  return signIn(deps, tx, {
    user,
    origin,
    begunAt: proof.createdAt,
    amr: ['mail'],
    isNewUser: false,
    redirectUrl: null,
    now,
  })
}

/** The same for every reason, so that it reveals nothing. */
function buildRefusal(kind: MailLogin['by']['kind'], reason: string): Problem {
  if (kind === 'link') return buildLinkInvalid(reason)
  return new Problem('login_failed', 'The code is wrong, was used, or has expired. Ask for a new mail.', {
    reason,
    headers: { 'www-authenticate': 'Bearer' },
  })
}

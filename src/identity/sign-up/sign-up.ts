import type { Texts } from '../../base/language/texts.ts'
import { invalidField, Problem } from '../../http/problem/problem.ts'
import { checkShownName } from '../../http/shape/shown-name.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type RegistrationDeps, registerWithAccount } from '../account/new-user.ts'
import type { SignUpAddress } from '../address-proof/address-proof.store.ts'
import {
  describeSignUpAddress,
  findProof,
  findProofGoal,
  keepSignUp,
  type ProofGoal,
  type ProofOrigin,
  takeSignUp,
} from '../address-proof/address-proof.ts'
import { buildLinkMail } from '../mail/link-mail.ts'
import { writeMail } from '../mail/outbox.ts'
import type { PasswordDeps } from '../password/password.ts'
import { type IssuedSession, openLockedSession, type SessionDeps, type SessionOrigin } from '../session/session.ts'
import { hashFirstPassword } from '../user/invited-user.ts'
import type { LinkDeps } from '../user/password/password-reset.ts'
import { buildLinkInvalid, createProofToken } from '../user/proof/proof-token.ts'
import { foldEmail } from '../user-record/email-key.ts'
import type { UserRecord } from '../user-record/user.store.ts'

/** Lifetime of the link of a sign-up. */
export const SIGN_UP_LIFETIME_MS = 3_600_000

/** The page of the link of a sign-up. */
export const SIGN_UP_CONFIRM = '/auth/sign-up/confirm'

/** Rule for sign-ups with e-mail and password: `SIGN_UP` and `SIGN_UP_EMAIL_DOMAINS`. */
export interface SignUpRules {
  mode: 'closed' | 'invited' | 'open'
  /** Domains of the allowed addresses, in lower case; none for all. */
  domains: readonly string[]
}

/** Dependencies of a sign-up. */
export interface SignUpDeps extends LinkDeps, PasswordDeps, SessionDeps, RegistrationDeps {
  signUp: SignUpRules
}

/** Outcome of a request. For the audit log only: the caller gets one answer for all of them. */
export type SignUpResult = 'sent' | 'known' | 'not_invited' | 'too_many'

/** Checks that sign-up is open. Throws 403 `sign_up_closed`. */
export function checkSignUpOpen({ signUp }: Pick<SignUpDeps, 'signUp'>): void {
  if (signUp.mode !== 'closed') return
  throw new Problem('sign_up_closed', 'Nobody can sign up here. Ask an administrator for an invitation.', {
    reason: 'SIGN_UP is closed',
  })
}

function isAllowedDomain({ domains }: SignUpRules, email: string): boolean {
  return domains.length === 0 || domains.includes(foldEmail(email.slice(email.lastIndexOf('@') + 1)))
}

/**
 * Begins a sign-up and sends its mail, in the caller's transaction (docs/contract/identity.md#sign-up). A known, an
 * unknown and an uninvited address cost the same statements. Nothing of the user is kept yet, and no password. Throws
 * 403 `sign_up_closed`, 422 for an address of another domain and 429 or 503 beyond the limits.
 */
export async function requestSignUp(
  deps: SignUpDeps,
  tx: Database,
  input: { email: string; origin: ProofOrigin; texts: Texts; now: Date },
): Promise<SignUpResult> {
  const { email, origin, texts, now } = input
  checkSignUpOpen(deps)
  if (!isAllowedDomain(deps.signUp, email))
    throw invalidField('email', 'domain_not_allowed', 'is not of a domain that may sign up here')
  const { token, tokenHash } = createProofToken(deps.random)
  const expiresAt = new Date(now.getTime() + SIGN_UP_LIFETIME_MS)
  const address = await keepSignUp(tx, { tokenHash, email, origin, expiresAt, now })
  const result = decideResult(deps.signUp, address)
  const facts = { texts, serviceName: deps.serviceName }
  const content =
    result === 'known'
      ? buildLinkMail('known', { ...facts, link: `${deps.baseUrl()}/auth/sign-in` })
      : buildLinkMail('sign-up', { ...facts, link: `${deps.baseUrl()}${SIGN_UP_CONFIRM}?token=${token}` })
  const isReal = result === 'sent' || result === 'known'
  await writeMail(deps, tx, { kind: 'sign-up', to: email, content, expiresAt, isReal, now })
  return result
}

function decideResult({ mode }: SignUpRules, address: SignUpAddress & { isKept: boolean }): SignUpResult {
  if (!address.isKept) return 'too_many'
  if (address.isKnown) return 'known'
  return mode === 'invited' && !address.isInvited ? 'not_invited' : 'sent'
}

/** The sign-up of a link; undefined for a link that is not valid, or no longer. Does not spend it. Throws 403. */
export async function findSignUp(
  deps: Pick<SignUpDeps, 'signUp'>,
  db: Database,
  { token, browserId, now }: { token: string; browserId?: string | undefined; now: Date },
): Promise<{ email: string; goal: ProofGoal } | undefined> {
  checkSignUpOpen(deps)
  const proof = await findProof(db, { token, purpose: 'sign-up', now })
  if (!proof || (await findRefusal(deps, db, { email: proof.email, now }))) return undefined
  return { email: proof.email, goal: findProofGoal(proof, browserId) }
}

/** The reason for which an address cannot be registered any more. For the audit log only. */
async function findRefusal(
  { signUp }: Pick<SignUpDeps, 'signUp'>,
  db: Database,
  { email, now }: { email: string; now: Date },
): Promise<string | undefined> {
  if (!isAllowedDomain(signUp, email)) return 'domain_not_allowed'
  const { isKnown, isInvited } = await describeSignUpAddress(db, { email, now })
  if (isKnown) return 'address_taken'
  return signUp.mode === 'invited' && !isInvited ? 'not_invited' : undefined
}

/** The confirmation of a sign-up: its link, and the password and name of the new user. */
export interface SignUpConfirmation {
  token: string
  password: string
  name: string | null
  origin: SessionOrigin
  /** The id of the browser that confirms, of a page. */
  browserId?: string | undefined
  trace: string | null
  now: Date
}

/** A checked confirmation. */
export type PreparedSignUp = { kind: 'invalid' } | { kind: 'ready'; passwordHash: string }

/** Checks and hashes the password, for a valid link only: a stranger gets no hash computed. Throws 403, 422. */
export async function prepareSignUp(
  deps: SignUpDeps,
  db: Database,
  { token, password, name, now }: SignUpConfirmation,
): Promise<PreparedSignUp> {
  const email = (await findSignUp(deps, db, { token, now }))?.email
  if (email === undefined) return { kind: 'invalid' }
  if (name !== null) checkShownName(name)
  return { kind: 'ready', passwordHash: await hashFirstPassword(deps, { password, owner: { email, name } }) }
}

/** A completed sign-up: the new user with its first session, and where the browser that began it continues. */
export interface CompletedSignUp {
  user: UserRecord
  issued: IssuedSession & { refreshToken: string }
  goal: ProofGoal
}

/** Registers the user and opens its first session. Of concurrent confirmations one succeeds. Throws 409. */
export async function completeSignUp(
  deps: SignUpDeps,
  tx: Database,
  { confirmation, prepared }: { confirmation: SignUpConfirmation; prepared: PreparedSignUp },
): Promise<CompletedSignUp | { problem: Problem }> {
  if (prepared.kind === 'invalid') return { problem: buildLinkInvalid('unknown_used_or_expired') }
  const { token, name, origin, browserId, trace, now } = confirmation
  const proof = await takeSignUp(tx, { token, now })
  if (!proof) return { problem: buildLinkInvalid('used_meanwhile') }
  const { email } = proof
  const refusal = await findRefusal(deps, tx, { email, now })
  if (refusal) return { problem: buildLinkInvalid(refusal) }
  const { passwordHash } = prepared
  const { user, account } = await registerWithAccount(deps, tx, { email, name, passwordHash, trace, now })
  const accounts = [{ id: account.id, name: account.name }]
  const issued = await openLockedSession(deps, tx, { userId: user.id, accounts, origin, amr: ['pwd'], now })
  if (issued.refreshToken === null) throw new Error('the session of a sign-up has no refresh token')
  return { user, issued: { ...issued, refreshToken: issued.refreshToken }, goal: findProofGoal(proof, browserId) }
}

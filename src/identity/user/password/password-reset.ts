import type { UserId } from '../../../base/id.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { Random } from '../../../base/random.ts'
import type { Problem } from '../../../http/problem/problem.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { endUserApiKeys } from '../../access/api-key.ts'
import { buildLinkMail } from '../../mail/link-mail.ts'
import { checkCanSend, type MailDeps, writeMail } from '../../mail/outbox.ts'
import type { PasswordDeps } from '../../password/password.ts'
import { checkNewPassword } from '../../password/password-rule.ts'
import { endUserAccess } from '../../session/session.ts'
import { clearLoginThrottle } from '../../throttle/login-attempt.ts'
import {
  deleteProofTokens,
  findProofCandidate,
  findProvenUser,
  insertProofToken,
  lockProvenUser,
} from '../proof/proof-token.store.ts'
import { buildLinkInvalid, createProofToken, hashProofToken } from '../proof/proof-token.ts'
import { setPasswordHash } from './own-password.store.ts'
import type { EndedTokens } from './password-change.ts'

/** Lifetime of a reset link. */
export const RESET_LIFETIME_MS = 3_600_000

/** Limit of links of a user in this time, against flooding a mailbox. */
export const LINKS_LIMIT = 3
export const LINKS_WINDOW_MS = 15 * 60_000

/** Dependencies of the operations that send links. */
export interface LinkDeps extends MailDeps {
  random: Random
  /** `BASE_URL`. */
  baseUrl: () => string
  /** `BRAND_NAME`. */
  serviceName: string
}

/** Outcome of a request for a link. For the audit trail only: the caller gets one answer for all of them. */
export type LinkResult = 'sent' | 'unknown' | 'too_many' | 'verified_already'

/**
 * Sends a reset link to an address (docs/contract/sessions.md#reset-by-mail), in the caller's transaction. A known and an
 * unknown address cost the same statements. Throws 503 when no mail can be sent.
 */
export async function requestReset(
  deps: LinkDeps,
  tx: Database,
  { email, texts, now }: { email: string; texts: Texts; now: Date },
): Promise<{ result: LinkResult; userId: UserId | null }> {
  checkCanSend(deps)
  const since = new Date(now.getTime() - LINKS_WINDOW_MS)
  const user = await findProofCandidate(tx, { email }, { purpose: 'reset', since, limit: LINKS_LIMIT })
  const result = !user ? 'unknown' : user.recent < LINKS_LIMIT && user.room > 0 ? 'sent' : 'too_many'
  const isReal = result === 'sent'
  const { token, tokenHash } = createProofToken(deps.random)
  const expiresAt = new Date(now.getTime() + RESET_LIFETIME_MS)
  const to = user?.email ?? email
  const userId = user?.userId ?? null
  await insertProofToken(tx, { tokenHash, purpose: 'reset', userId: isReal ? userId : null, email: to, expiresAt, now })
  const content = buildLinkMail('reset', {
    texts,
    link: `${deps.baseUrl()}/auth/reset?token=${token}`,
    serviceName: deps.serviceName,
  })
  await writeMail(deps, tx, { kind: 'reset', to, content, expiresAt, isReal, now })
  return { result, userId }
}

/** Links that no limit counts: the operator of the machine asks for them. */
const NO_LIMIT = 2 ** 31 - 1

/** Makes a reset link without a mail, for `signalbox user reset-link`. Undefined for a disabled or deleted user. */
export async function makeResetLink(
  { random, baseUrl }: Pick<LinkDeps, 'random' | 'baseUrl'>,
  tx: Database,
  { userId, now }: { userId: UserId; now: Date },
): Promise<{ url: string; expiresAt: Date } | undefined> {
  const user = await findProofCandidate(tx, { userId }, { purpose: 'reset', since: now, limit: NO_LIMIT })
  if (!user) return undefined
  const { token, tokenHash } = createProofToken(random)
  const expiresAt = new Date(now.getTime() + RESET_LIFETIME_MS)
  await insertProofToken(tx, { tokenHash, purpose: 'reset', userId, email: user.email, expiresAt, now })
  return { url: `${baseUrl()}/auth/reset?token=${token}`, expiresAt }
}

/** Whether a reset link is valid at this time; does not spend it. Pages check it before the user chooses a password. */
export async function isResetLink(db: Database, { token, now }: { token: string; now: Date }): Promise<boolean> {
  return (await findProvenUser(db, { tokenHash: hashProofToken(token), purpose: 'reset', now })) !== undefined
}

/** A new password for a valid link, or an invalid link. */
export type PreparedReset = { kind: 'invalid' } | { kind: 'ready'; passwordHash: string }

/** Checks and hashes a new password, outside any transaction. Throws a 422 on `password`, for a valid link only. */
export async function prepareReset(
  { passwords }: PasswordDeps,
  db: Database,
  { token, password, now }: { token: string; password: string; now: Date },
): Promise<PreparedReset> {
  const owner = await findProvenUser(db, { tokenHash: hashProofToken(token), purpose: 'reset', now })
  if (!owner) return { kind: 'invalid' }
  checkNewPassword(password, { path: 'password', owner })
  return { kind: 'ready', passwordHash: await passwords.hash(password) }
}

/**
 * Sets the new password of a reset and spends its link, in the caller's transaction: verifies the address, revokes all
 * sessions and, unless `keepApiKeys`, the API keys, and clears the throttle (docs/contract/sessions.md#reset-by-mail).
 */
export async function resetByLink(
  tx: Database,
  input: { token: string; prepared: PreparedReset; keepApiKeys: boolean; now: Date },
): Promise<{ userId: UserId; passwordHash: string; ended: EndedTokens } | { problem: Problem }> {
  const { token, prepared, keepApiKeys, now } = input
  if (prepared.kind === 'invalid') return { problem: buildLinkInvalid('unknown_used_or_expired') }
  const user = await lockProvenUser(tx, { tokenHash: hashProofToken(token), purpose: 'reset', now })
  if (!user) return { problem: buildLinkInvalid('used_meanwhile') }
  const { userId } = user
  await setPasswordHash(tx, { userId, passwordHash: prepared.passwordHash, verifiedAt: now, now })
  await deleteProofTokens(tx, { userId, purpose: 'reset' })
  await clearLoginThrottle(tx, userId)
  await endUserAccess(tx, { userId, now })
  if (!keepApiKeys) await endUserApiKeys(tx, { userId, now })
  const { passwordHash } = prepared
  return { userId, passwordHash, ended: { sessions: user.sessions, apiKeys: keepApiKeys ? 0 : user.apiKeys } }
}

import type { UserId } from '../../../base/id.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { Problem } from '../../../http/problem/problem.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { buildLinkMail } from '../../mail/link-mail.ts'
import { checkCanSend, writeMail } from '../../mail/outbox.ts'
import {
  deleteProofTokens,
  findProofCandidate,
  insertProofToken,
  lockProvenUser,
  proveAddress,
} from '../proof/proof-token.store.ts'
import { buildLinkInvalid, createProofToken, hashProofToken } from '../proof/proof-token.ts'
import { LINKS_LIMIT, LINKS_WINDOW_MS, type LinkDeps, type LinkResult } from './password-reset.ts'

/** Lifetime of a verification link. */
export const VERIFICATION_LIFETIME_MS = 24 * 3_600_000

/** Sends a verification link (docs/contract/sessions.md#verification-of-an-address). Throws 503 without a mailer. */
export async function requestVerification(
  deps: LinkDeps,
  tx: Database,
  { userId, texts, now }: { userId: UserId; texts: Texts; now: Date },
): Promise<LinkResult> {
  checkCanSend(deps)
  const since = new Date(now.getTime() - LINKS_WINDOW_MS)
  const user = await findProofCandidate(tx, { userId }, { purpose: 'verification', since, limit: LINKS_LIMIT })
  if (!user) return 'unknown'
  if (user.emailVerifiedAt !== null) return 'verified_already'
  if (user.recent >= LINKS_LIMIT || user.room === 0) return 'too_many'
  const { token, tokenHash } = createProofToken(deps.random)
  const expiresAt = new Date(now.getTime() + VERIFICATION_LIFETIME_MS)
  const { email } = user
  await insertProofToken(tx, { tokenHash, purpose: 'verification', userId, email, expiresAt, now })
  const content = buildLinkMail('verification', {
    texts,
    link: `${deps.baseUrl()}/auth/verify?token=${token}`,
    serviceName: deps.serviceName,
  })
  await writeMail(deps, tx, { kind: 'verification', to: email, content, expiresAt, now })
  return 'sent'
}

/** Verifies the address that a link was sent to, and spends the link, in the caller's transaction. */
export async function verifyByLink(
  tx: Database,
  { token, now }: { token: string; now: Date },
): Promise<{ userId: UserId; isChanged: boolean } | { problem: Problem }> {
  const user = await lockProvenUser(tx, { tokenHash: hashProofToken(token), purpose: 'verification', now })
  if (!user) return { problem: buildLinkInvalid('unknown_used_or_expired') }
  const { userId, isEmailVerified } = user
  await deleteProofTokens(tx, { userId, purpose: 'verification' })
  if (!isEmailVerified) await proveAddress(tx, { userId, now })
  return { userId, isChanged: !isEmailVerified }
}

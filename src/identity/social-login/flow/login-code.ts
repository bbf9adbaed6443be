import { createHash, timingSafeEqual } from 'node:crypto'
import type { ConnectionId, UserId } from '../../../base/id.ts'
import type { Random } from '../../../base/random.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { ProviderIdentity } from '../../engine/engine.ts'
import { hashSecret } from './flow-state.ts'
import { insertLoginCode, type LoginCode, takeLoginCode } from './login-code.store.ts'

/** Lifetime of a one-time code (docs/contract/social-login.md#one-time-code). */
const CODE_LIFETIME_MS = 60_000

/** Subject of a code. */
type NewCode =
  | { purpose: 'sign-in'; userId: UserId; codeChallenge: string; isNewUser: boolean; connection: ConnectionId | null }
  | { purpose: 'link'; userId: UserId; identity: ProviderIdentity }

/** Makes a one-time code; only its hash is stored. */
export async function createLoginCode(random: Random, tx: Database, code: NewCode, now: Date): Promise<string> {
  const text = random.bytes(32).toString('base64url')
  await insertLoginCode(tx, hashSecret(text), { ...code, expiresAt: new Date(now.getTime() + CODE_LIFETIME_MS) }, now)
  return text
}

/** A spent code, or the reason of a refusal. */
export type TakenCode<Purpose extends LoginCode['purpose']> =
  | { kind: 'taken'; code: Extract<LoginCode, { purpose: Purpose }> }
  | { kind: 'refused'; reason: 'code_unknown' | 'code_expired'; userId: UserId | null }

/** Spends a code, also when it is refused; the caller commits. */
export async function redeemLoginCode<Purpose extends LoginCode['purpose']>(
  tx: Database,
  input: { code: string; purpose: Purpose; now: Date },
): Promise<TakenCode<Purpose>> {
  const code = await takeLoginCode(tx, hashSecret(input.code), input.purpose)
  if (!code) return { kind: 'refused', reason: 'code_unknown', userId: null }
  if (code.expiresAt <= input.now) return { kind: 'refused', reason: 'code_expired', userId: code.userId }
  return { kind: 'taken', code: code as Extract<LoginCode, { purpose: Purpose }> }
}

/** Whether a verifier belongs to a challenge: its SHA-256 in base64url (RFC 7636 section 4.6). */
export function isVerifierRight(verifier: string, challenge: string): boolean {
  const computed = Buffer.from(createHash('sha256').update(verifier).digest('base64url'))
  const given = Buffer.from(challenge)
  return computed.length === given.length && timingSafeEqual(computed, given)
}

import type { SessionId, UserId } from '../../../base/id.ts'
import { type Keyring, KeyringError } from '../../../base/keyring.ts'
import type { Random } from '../../../base/random.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { AuthMethod } from '../../session/auth-method.ts'
import type { SessionDeps } from '../../session/session.ts'
import { lowerSessions } from '../../session/session-proof.ts'
import { clearFactorThrottle } from '../../throttle/login-attempt.ts'
import { createRecoveryCodes, hashRecoveryCode } from './recovery-code.ts'
import {
  countFactors,
  deleteFactors,
  type FactorCount,
  lockHasFactor,
  replaceRecoveryCodes,
  takeRecoveryCode,
} from './second-factor.store.ts'
import { matchTotp, TOTP_CODE_PATTERN } from './totp.ts'
import { findTotp, type TotpFactor, takeTotpStep } from './totp-factor.store.ts'

export { findFactors } from './second-factor.store.ts'

/** Dependencies of the operations on second factors. */
export interface FactorDeps extends SessionDeps {
  keyring: Pick<Keyring, 'seal' | 'open'>
  /** The name of the service in authenticator apps and browsers. */
  serviceName: string
}

/** The ways to prove a second factor. */
export type FactorMethod = 'totp' | 'recovery-code' | 'passkey'

/** Whether a user has a second factor. Recovery codes alone do not count. Pure. */
function hasFactor({ hasTotp, passkeys }: Pick<FactorCount, 'hasTotp' | 'passkeys'>): boolean {
  return hasTotp || passkeys > 0
}

/** The ways in which a user can prove a second factor. Pure. */
export function listFactorMethods(count: FactorCount): FactorMethod[] {
  if (!hasFactor(count)) return []
  return [
    ...(count.hasTotp ? (['totp'] as const) : []),
    ...(count.passkeys > 0 ? (['passkey'] as const) : []),
    ...(count.recoveryCodes > 0 ? (['recovery-code'] as const) : []),
  ]
}

/** The session of a caller. Throws 409 for an API key: a factor belongs to a user. */
export function readUserSession(caller: Pick<Caller, 'sessionId'>): SessionId {
  if (caller.sessionId !== null) return caller.sessionId
  throw new Problem('conflict', 'An API key has no second factor. Sign in and use the session.')
}

/** The `context` of the keyring for the secret of a factor. */
export const totpContextOf = (id: string) => `totp:${id}`

/** The secret of a factor; undefined when no key of SECRET_KEY decrypts it. */
export function openTotpSecret(
  { keyring }: Pick<FactorDeps, 'keyring'>,
  factor: Pick<TotpFactor, 'id' | 'secretEncrypted'>,
): Buffer | undefined {
  try {
    return Buffer.from(keyring.open(factor.secretEncrypted, totpContextOf(factor.id)), 'base64url')
  } catch (error) {
    if (error instanceof KeyringError) return undefined
    throw error
  }
}

/** Reason of a refused code. For the log and the audit log only. */
export type CodeRefusal = 'code_wrong' | 'code_used' | 'no_factor' | 'secret_unreadable' | 'recovery_code_wrong'

/** The result of a check of a code. */
export type CheckedCode = { ok: true; methods: AuthMethod[]; used: FactorMethod } | { ok: false; reason: CodeRefusal }

/** Checks a code of an authenticator app or a recovery code, and spends it, in the caller's transaction. */
export async function useFactorCode(
  deps: Pick<FactorDeps, 'keyring'>,
  tx: Database,
  { userId, code, now }: { userId: UserId; code: string; now: Date },
): Promise<CheckedCode> {
  const typed = code.replace(/\s/g, '')
  if (TOTP_CODE_PATTERN.test(typed)) return useTotpCode(deps, tx, { userId, code: typed, now })
  const hash = hashRecoveryCode(code)
  const isTaken = hash !== undefined && (await takeRecoveryCode(tx, { userId, hash, now }))
  return isTaken ? { ok: true, methods: ['otp'], used: 'recovery-code' } : { ok: false, reason: 'recovery_code_wrong' }
}

async function useTotpCode(
  deps: Pick<FactorDeps, 'keyring'>,
  tx: Database,
  { userId, code, now }: { userId: UserId; code: string; now: Date },
): Promise<CheckedCode> {
  const factor = await findTotp(tx, { userId })
  if (!factor || factor.confirmedAt === null) return { ok: false, reason: 'no_factor' }
  const reason = await takeCodeOf(deps, tx, { factor, code, confirms: false, now })
  return reason ? { ok: false, reason } : { ok: true, methods: ['otp'], used: 'totp' }
}

/** Spends a code of a factor; with `confirms` the confirming one. Returns the reason of a refusal. */
export async function takeCodeOf(
  deps: Pick<FactorDeps, 'keyring'>,
  tx: Database,
  { factor, code, confirms, now }: { factor: TotpFactor; code: string; confirms: boolean; now: Date },
): Promise<CodeRefusal | undefined> {
  const secret = openTotpSecret(deps, factor)
  if (!secret) return 'secret_unreadable'
  const nowMs = now.getTime()
  const step = matchTotp(secret, code, { nowMs, after: factor.lastStep })
  if (step === undefined)
    return matchTotp(secret, code, { nowMs, after: null }) === undefined ? 'code_wrong' : 'code_used'
  return (await takeTotpStep(tx, { id: factor.id, step, confirms, now })) ? undefined : 'code_used'
}

/** Replaces the recovery codes behind the lock of the user: none follow its last factor. Throws 409 without one. */
export async function renewRecoveryCodes(
  deps: { random: Random },
  tx: Database,
  user: { userId: UserId; now: Date },
): Promise<string[]> {
  if (await lockHasFactor(tx, user)) return createNewRecoveryCodes(deps, tx, user)
  throw new Problem(
    'conflict',
    'Recovery codes belong to a second factor. Enrol an authenticator app or a passkey first.',
  )
}

async function createNewRecoveryCodes(
  { random }: { random: Random },
  tx: Database,
  { userId, now }: { userId: UserId; now: Date },
): Promise<string[]> {
  const codes = createRecoveryCodes(random)
  const hashes = codes.map((code) => hashRecoveryCode(code) as Buffer)
  await replaceRecoveryCodes(tx, { userId, hashes, now })
  return codes
}

/** Recovery codes for the first factor of a locked user; null for a further one, which leaves those there are. */
export async function createFirstRecoveryCodes(
  deps: { random: Random },
  tx: Database,
  user: { userId: UserId; now: Date },
): Promise<string[] | null> {
  const { recoveryCodes } = await countFactors(tx, user.userId)
  return recoveryCodes > 0 ? null : createNewRecoveryCodes(deps, tx, user)
}

/** Removes what depends on factors after the last one: recovery codes, challenges, the mark `mfa` of sessions. */
export async function endLastFactor(tx: Database, { userId, now }: { userId: UserId; now: Date }): Promise<void> {
  await deleteFactors(tx, { userId })
  await lowerSessions(tx, userId, now)
}

/** Removes every factor of a locked user, and clears its throttle of codes. */
export async function removeAllFactors(tx: Database, user: { userId: UserId; now: Date }): Promise<void> {
  await endLastFactor(tx, user)
  await clearFactorThrottle(tx, user.userId)
}

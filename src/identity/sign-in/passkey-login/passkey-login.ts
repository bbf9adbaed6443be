import type { AuthenticationResponseJSON } from '@simplewebauthn/server'
import { Problem } from '../../../http/problem/problem.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { SessionDeps, SessionOrigin } from '../../session/session.ts'
import { loadUser } from '../../user/user.ts'
import { type RefusedSignIn, type SignIn, signIn } from '../outcome/sign-in.ts'
import { methodOf, type PasskeyRefusal, usePasskey } from '../passkey/passkey.ts'

/** Signs in by a passkey alone, two factors (docs/contract/second-factor.md#passkeys). The caller commits a refusal. */
export async function logInWithPasskey(
  deps: SessionDeps,
  tx: Database,
  input: { credential: AuthenticationResponseJSON; origin: SessionOrigin & { address: string }; now: Date },
): Promise<SignIn | RefusedSignIn> {
  const { credential, origin, now } = input
  const { address } = origin
  const ask = { purpose: 'passkey-sign-in', userId: null, sessionId: null, address, now } as const
  const proof = await usePasskey(deps, tx, { ...ask, credential })
  if (!proof.ok) return { problem: buildFailed(proof.reason), userId: proof.userId }
  const { userId } = proof.passkey
  const amr = [methodOf(proof.passkey), 'user', 'mfa'] as const
  const user = await loadUser(tx, userId).catch((error: unknown) => {
    if (error instanceof Problem) return undefined
    throw error
  })
  const opened = user && (await signIn(deps, tx, { user, origin, amr, isNewUser: false, redirectUrl: null, now }))
  return opened ?? { problem: buildFailed('disabled'), userId }
}

function buildFailed(reason: PasskeyRefusal | 'disabled'): Problem {
  const text = 'This passkey is unknown, or this sign-in has expired. Start again.'
  return new Problem('second_factor_failed', text, { reason, headers: { 'www-authenticate': 'Bearer' } })
}

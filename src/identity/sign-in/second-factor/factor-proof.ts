import type { AuthenticationResponseJSON } from '@simplewebauthn/server'
import type { SessionId, UserId } from '../../../base/id.ts'
import { invalidField } from '../../../http/problem/problem.ts'
import type { Static } from '../../../http/shape/schema-type.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { AuthMethod } from '../../session/auth-method.ts'
import { type CredentialProof, toAuthentication } from '../passkey/passkey.schema.ts'
import { methodOf, type PasskeyRefusal, usePasskey } from '../passkey/passkey.ts'
import { type CodeRefusal, type FactorDeps, useFactorCode } from './second-factor.ts'

/** A proof of a second factor, as a request sends it. */
export type FactorProof = { kind: 'code'; code: string } | { kind: 'passkey'; credential: AuthenticationResponseJSON }

/** Reason of a refused proof. For the log and the audit log only. */
export type ProofRefusal = CodeRefusal | PasskeyRefusal

/** The result of a check of a proof. */
export type CheckedProof = { ok: true; methods: readonly AuthMethod[] } | { ok: false; reason: ProofRefusal }

/** Checks a proof of a second factor, and spends it. `sessionId` is the session of a step-up; null for a sign-in. */
export async function useFactorProof(
  deps: FactorDeps,
  tx: Database,
  input: { userId: UserId; sessionId: SessionId | null; proof: FactorProof; address: string; now: Date },
): Promise<CheckedProof> {
  const { userId, sessionId, proof, address, now } = input
  if (proof.kind === 'code') return useFactorCode(deps, tx, { userId, code: proof.code, now })
  const ask = { purpose: 'passkey-factor', userId, sessionId, address, now } as const
  const used = await usePasskey(deps, tx, { ...ask, credential: proof.credential })
  return used.ok ? { ok: true, methods: [methodOf(used.passkey)] } : { ok: false, reason: used.reason }
}

/** The proof of a body, which holds either a code or a credential. Throws a 422. */
export function readFactorProof(body: { code?: string; credential?: Static<typeof CredentialProof> }): FactorProof {
  const { code, credential } = body
  if (code !== undefined && credential === undefined) return { kind: 'code', code }
  if (credential !== undefined && code === undefined)
    return { kind: 'passkey', credential: toAuthentication(credential) }
  throw invalidField('code', 'one_proof', 'send either code or credential')
}

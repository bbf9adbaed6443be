import { Problem } from '../problem/problem.ts'
import type { Caller } from '../shape/caller.ts'

/**
 * Proof that a session must have given in the last 10 minutes (docs/contract/second-factor.md#step-up): `factor` the second
 * factor, if the user has one; `sign-in` the same, and of a user without one the sign-in.
 */
export type Freshness = 'factor' | 'sign-in'

/** For this long a proof is fresh. */
const FRESH_MS = 10 * 60_000

/** Whether the caller has a recent proof for a route. An API key has no user who could prove anything: it is fresh. */
export function isFresh(caller: Pick<Caller, 'proof'>, wanted: Freshness, now: Date): boolean {
  const { proof } = caller
  if (proof === null) return true
  const isRecent = now.getTime() - proof.provenAt.getTime() <= FRESH_MS
  return proof.hasFactor ? isRecent && proof.isMultiFactor : wanted === 'factor' || isRecent
}

/** The 403 for a caller that is not fresh. `step-up` answers it; a user without a second factor signs in again. */
export function buildNotFresh({ proof }: Pick<Caller, 'proof'>): Problem {
  const text = proof?.hasFactor
    ? 'Prove your second factor again: POST /api/v3/auth/session/step-up. The proof counts for 10 minutes.'
    : 'Sign in again. A sign-in counts for 10 minutes here.'
  return new Problem('fresh_factor_required', text, {
    reason: proof?.hasFactor ? 'factor_not_fresh' : 'sign_in_not_fresh',
  })
}

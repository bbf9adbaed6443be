import { Problem } from '../../../http/problem/problem.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { signFor } from '../../session/session.ts'
import { lockUser, raiseSession } from '../../session/session-proof.ts'
import { chargeFactorAttempt, forgiveFactorAttempt } from '../../throttle/login-attempt.ts'
import { buildThrottled } from '../../throttle/login-problem.ts'
import { type FactorProof, useFactorProof } from '../second-factor/factor-proof.ts'
import { type FactorDeps, readUserSession } from '../second-factor/second-factor.ts'
import { buildWrongCode } from '../second-factor/totp-factor.ts'

/** A new proof of a second factor in a session. */
export interface StepUp {
  caller: Caller
  proof: FactorProof
  address: string
  now: Date
}

/** The session after a step-up: its new JWT and lifetime. */
export interface SteppedUp {
  jwt: string
  expiresInSeconds: number
  authTime: Date
}

/** Counts a step-up as failed before its code is checked. Returns the end of a wait. Outside any transaction. */
export async function chargeStepUp(db: Database, { caller, proof, address, now }: StepUp): Promise<Date | undefined> {
  readUserSession(caller)
  return proof.kind === 'code' ? chargeFactorAttempt(db, { userId: caller.userId, address, now }) : undefined
}

/** Proves a second factor again (docs/contract/second-factor.md#step-up). The caller commits a refusal. Throws 401. */
export async function stepUp(
  deps: FactorDeps,
  tx: Database,
  { input, until }: { input: StepUp; until: Date | undefined },
): Promise<SteppedUp | { problem: Problem }> {
  const { caller, proof, address, now } = input
  if (until) return { problem: buildThrottled(until, now) }
  const { userId } = caller
  const sessionId = readUserSession(caller)
  // Locks the user before its factors, challenges and sessions, in the order of a removal of a factor.
  await lockUser(tx, { userId })
  const proven = await useFactorProof(deps, tx, { userId, sessionId, proof, address, now })
  if (!proven.ok) return { problem: buildNotProven(proof, proven.reason) }
  const raised = await raiseSession(tx, { sessionId, methods: proven.methods, now })
  if (proof.kind === 'code') await forgiveFactorAttempt(tx, { userId, address, now })
  return { ...signFor(deps, raised, now), authTime: now }
}

function buildNotProven(proof: FactorProof, reason: string): Problem {
  if (proof.kind === 'code') return buildWrongCode(reason)
  const message = 'is not a proof by a passkey of yours'
  const errors = [{ path: 'credential', code: 'not_accepted' as const, message }]
  return new Problem('validation_failed', 'credential: is not a proof by a passkey of yours', { errors, reason })
}

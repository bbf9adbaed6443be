import { createHash } from 'node:crypto'
import type { PublicKeyCredentialRequestOptionsJSON } from '@simplewebauthn/server'
import type { UserId } from '../../../base/id.ts'
import type { Random } from '../../../base/random.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { SessionOrigin } from '../../session/session.ts'
import { lockUser } from '../../session/session-proof.ts'
import { chargeFactorAttempt, forgiveFactorAttempt } from '../../throttle/login-attempt.ts'
import { buildThrottled } from '../../throttle/login-problem.ts'
import { loadUser } from '../../user/user.ts'
import { countAttempt, findChallenge, useChallenge } from '../challenge/factor-challenge.store.ts'
import {
  CHALLENGE_LIFETIME_MS,
  type ChallengeRefusal,
  createChallenge,
  findChallengeRefusal,
  hashChallenge,
} from '../challenge/factor-challenge.ts'
import { type RefusedSignIn, type SignIn, signIn } from '../outcome/sign-in.ts'
import { askForPasskey } from '../passkey/passkey.ts'
import { type CheckedProof, type FactorProof, type ProofRefusal, useFactorProof } from './factor-proof.ts'
import { countFactors, findPresentPassword } from './second-factor.store.ts'
import { type FactorDeps, type FactorMethod, listFactorMethods } from './second-factor.ts'

/** A sign-in with a correct first step that waits for its second step. */
export interface OpenStep {
  challenge: string
  methods: FactorMethod[]
}

/** The first step of a sign-in: the correct password, or the link or code of a mail. */
type FirstStep = 'pwd' | 'mail'

/** The hash that binds a challenge to the first step and to the password that the user had then. */
const hashProof = (first: FirstStep, passwordHash: string | null) =>
  createHash('sha256')
    .update(JSON.stringify([first, passwordHash]))
    .digest()

function findFirstStep(proofHash: Buffer | null | undefined, passwordHash: string | null): FirstStep | undefined {
  const steps: FirstStep[] = passwordHash === null ? ['mail'] : ['pwd', 'mail']
  return steps.find((first) => proofHash?.equals(hashProof(first, passwordHash)))
}

/** Begins a second step (docs/contract/second-factor.md#second-step). Undefined for a user without a second factor. */
export async function openSecondStep(
  deps: { random: Random },
  tx: Database,
  input: { userId: UserId; passwordHash: string | null; first?: FirstStep; address: string; now: Date },
): Promise<OpenStep | undefined> {
  const { userId, passwordHash, first = 'pwd', address, now } = input
  const methods = listFactorMethods(await countFactors(tx, userId))
  if (methods.length === 0) return undefined
  const proofHash = hashProof(first, passwordHash)
  return {
    challenge: await createChallenge(deps.random, tx, { purpose: 'sign-in', userId, address, proofHash, now }),
    methods,
  }
}

/** The answer to a correct first step of a user with a second factor. */
export function buildFactorRequired({ challenge, methods }: OpenStep, first: FirstStep = 'pwd'): Problem {
  const what = first === 'pwd' ? 'password' : 'code'
  return new Problem('second_factor_required', `The ${what} is right. Prove your second factor to sign in.`, {
    headers: { 'www-authenticate': 'Bearer' },
    secondFactor: { challenge, methods, expiresIn: CHALLENGE_LIFETIME_MS / 1000 },
  })
}

/** The second step of a sign-in. */
export interface FactorLogin {
  challenge: string
  proof: FactorProof
  origin: SessionOrigin & { address: string }
  now: Date
}

/** Reason of a refused second step. For the log and the audit log only: the answer is the same for all. */
export type FactorLoginRefusal = ChallengeRefusal | ProofRefusal | 'password_changed' | 'disabled'

/** An allowed second step, or the reason of a refusal. */
export type CheckedFactorLogin =
  | { kind: 'throttled'; until: Date; userId: UserId }
  | { kind: 'refused'; reason: ChallengeRefusal }
  | { kind: 'charged'; userId: UserId }

/** Counts a second step as failed before its check, outside any transaction: concurrent ones see these counts. */
export async function checkFactorLogin(db: Database, login: FactorLogin): Promise<CheckedFactorLogin> {
  const { challenge, proof, now } = login
  const { address } = login.origin
  const found = await findChallenge(db, { hash: hashChallenge(challenge) })
  const reason = findChallengeRefusal(found, { purpose: 'sign-in', address, now })
  if (reason || !found?.userId) return { kind: 'refused', reason: reason ?? 'challenge_unknown' }
  const { userId } = found
  if (proof.kind !== 'code') return { kind: 'charged', userId }
  const until = await chargeFactorAttempt(db, { userId, address, now })
  return until ? { kind: 'throttled', until, userId } : { kind: 'charged', userId }
}

/** Takes the second step: opens the session, or returns the refusal, which the caller commits. Locks the user. */
export async function logInWithFactor(
  deps: FactorDeps,
  tx: Database,
  { login, checked }: { login: FactorLogin; checked: CheckedFactorLogin },
): Promise<SignIn | RefusedSignIn> {
  if (checked.kind === 'throttled') return { problem: buildThrottled(checked.until, login.now), userId: checked.userId }
  if (checked.kind === 'refused') return { problem: buildFactorFailed(checked.reason), userId: null }
  const result = await takeStep(deps, tx, { login, userId: checked.userId })
  return 'reason' in result ? { problem: buildFactorFailed(result.reason), userId: checked.userId } : result
}

async function takeStep(
  deps: FactorDeps,
  tx: Database,
  { login, userId }: { login: FactorLogin; userId: UserId },
): Promise<SignIn | { reason: FactorLoginRefusal }> {
  const { origin, proof, now } = login
  const { address } = origin
  const hash = hashChallenge(login.challenge)
  // Locks the user before its factors and challenges, in the order of a removal.
  await lockUser(tx, { userId })
  const challenge = await countAttempt(tx, { hash })
  const reason = findChallengeRefusal(challenge, { purpose: 'sign-in', address, userId, now })
  if (reason) return { reason }
  const present = await findPresentPassword(tx, { userId })
  if (present === undefined) return { reason: 'disabled' }
  const { passwordHash } = present
  const first = findFirstStep(challenge?.proofHash, passwordHash)
  if (!challenge || first === undefined) return { reason: 'password_changed' }
  const proven = await useFactorProof(deps, tx, { userId, sessionId: null, proof, address, now })
  if (!proven.ok) return { reason: proven.reason }
  await useChallenge(tx, { hash, now })
  const opened = await openSession(deps, tx, {
    userId,
    passwordHash,
    first,
    begunAt: challenge.createdAt,
    proven,
    origin,
    now,
  })
  if (!opened) return { reason: 'disabled' }
  if (proof.kind === 'code') await forgiveFactorAttempt(tx, { userId, address, now })
  return opened
}

async function openSession(
  deps: FactorDeps,
  tx: Database,
  input: {
    userId: UserId
    passwordHash: string | null
    first: FirstStep
    begunAt: Date
    proven: CheckedProof & { ok: true }
    origin: SessionOrigin
    now: Date
  },
): Promise<SignIn | undefined> {
  const { userId, passwordHash, first, begunAt, proven, origin, now } = input
  const user = await loadUser(tx, userId)
  const amr = [first, ...proven.methods, 'mfa' as const]
  const bound = passwordHash === null ? {} : { passwordHash }
  return signIn(deps, tx, { user, ...bound, begunAt, origin, amr, isNewUser: false, redirectUrl: null, now })
}

/** The options of a passkey for an open second step, or the refusal. The second step itself takes its proof. */
export async function askForFactorPasskey(
  deps: FactorDeps,
  tx: Database,
  { challenge, address, now }: { challenge: string; address: string; now: Date },
): Promise<{ options: PublicKeyCredentialRequestOptionsJSON } | { problem: Problem }> {
  const found = await findChallenge(tx, { hash: hashChallenge(challenge) })
  const reason = findChallengeRefusal(found, { purpose: 'sign-in', address, now })
  if (reason || !found?.userId) return { problem: buildFactorFailed(reason ?? 'challenge_unknown') }
  const ask = { purpose: 'passkey-factor', userId: found.userId, sessionId: null, address, now } as const
  return { options: await askForPasskey(deps, tx, ask) }
}

/** 401 for a second step that is not accepted, the same for every reason. */
function buildFactorFailed(reason: string): Problem {
  const text = 'The code is wrong, was used, or this sign-in has expired. Try the next code, or sign in again.'
  return new Problem('second_factor_failed', text, { reason, headers: { 'www-authenticate': 'Bearer' } })
}

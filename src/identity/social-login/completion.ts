import type { AccountId, SessionId, UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { enterByConnection } from '../connection/entry/entry.ts'
import { proveByConnection } from '../connection/entry/proof.ts'
import { findSessionRule } from '../connection/entry/session-rule.ts'
import type { SessionDeps, SessionOrigin } from '../session/session.ts'
import { type SignIn, signIn } from '../sign-in/outcome/sign-in.ts'
import { loadUser } from '../user/user.ts'
import { type ConnectionCounter, countEnded } from './connection-count.ts'
import { keepEngineToken } from './flow/engine-session.ts'
import { createLoginCode, isVerifierRight, redeemLoginCode } from './flow/login-code.ts'
import type { LoginFlow } from './flow/login-flow.store.ts'
import type { Refusal } from './refusal-problem.ts'
import type { FinishedFlow } from './social-login.ts'
import { resolveUser, type UserDeps } from './user/user.ts'

export type CompletionDeps = SessionDeps & UserDeps & ConnectionCounter & { keyring: Keyring }

/** A flow that ended: in a session, in a code that an app exchanges, in the proof of a session, or in a refusal. */
export type Completion =
  | { kind: 'signed-in'; flow: LoginFlow; signIn: SignIn }
  | { kind: 'code'; flow: LoginFlow; parameter: 'code' | 'link_code'; code: string; userId: UserId }
  | { kind: 'proven'; flow: LoginFlow; userId: UserId; sessionId: SessionId; account: AccountId }
  | { kind: 'refused'; flow: LoginFlow | undefined; reason: Refusal; detail: string | null; userId: UserId | null }

interface Origin {
  origin: SessionOrigin
  trace: string | null
  now: Date
}

/** Completes a finished flow: opens the session or issues the one-time code. The caller commits a refusal too. */
export async function completeFlow(
  deps: CompletionDeps,
  tx: Database,
  input: Origin & { finished: FinishedFlow },
): Promise<Completion> {
  const completion = await complete(deps, tx, input)
  const connection = completion.flow?.connection ?? null
  const reason = completion.kind === 'refused' ? completion.reason : null
  if (connection !== null) await countEnded(deps, tx, { connection, reason, now: input.now })
  return completion
}

async function complete(
  deps: CompletionDeps,
  tx: Database,
  { finished, origin, trace, now }: Origin & { finished: FinishedFlow },
): Promise<Completion> {
  if (finished.kind === 'refused') return { ...finished, userId: finished.flow?.linkTo ?? null }
  const { flow, identity } = finished
  if (flow.linkTo !== null) {
    const userId = flow.linkTo
    const code = await createLoginCode(deps.random, tx, { purpose: 'link', userId, identity }, now)
    return { kind: 'code', flow, parameter: 'link_code', code, userId }
  }
  const { connection, proves } = flow
  if (connection !== null && proves !== null) {
    const person = { ...identity, groups: finished.groups }
    const proven = await proveByConnection(deps, tx, { connection, session: proves, person, trace, now })
    return proven.kind === 'refused' ? { ...proven, flow, detail: null } : { ...proven, flow }
  }
  const resolved =
    connection === null
      ? await resolveUser(deps, tx, { identity, trace, now })
      : await enterByConnection(deps, tx, { connection, person: { ...identity, groups: finished.groups }, trace, now })
  if (resolved.kind === 'refused') return { ...resolved, flow, detail: null }
  const { user, isNewUser } = resolved
  if (flow.codeChallenge !== null) {
    const challenge = { codeChallenge: flow.codeChallenge, isNewUser, connection }
    const code = await createLoginCode(deps.random, tx, { purpose: 'sign-in', userId: user.id, ...challenge }, now)
    return { kind: 'code', flow, parameter: 'code', code, userId: user.id }
  }
  const by = 'connection' in resolved ? { byConnection: resolved } : {}
  const { redirectUrl } = flow
  const signedIn = await signIn(deps, tx, { user, origin, amr: ['fed'], ...by, isNewUser, redirectUrl, now })
  if (!signedIn) return { kind: 'refused', flow, reason: 'disabled', detail: null, userId: user.id }
  const { sessionId } = signedIn.issued
  if (finished.engineToken !== undefined)
    await keepEngineToken(deps, tx, { sessionId, userId: user.id, token: finished.engineToken, now })
  return { kind: 'signed-in', flow, signIn: signedIn }
}

/** The result of an exchange of a one-time code. */
export type ExchangedCode =
  | { kind: 'signed-in'; signIn: SignIn }
  | { kind: 'refused'; reason: Refusal; userId: UserId | null }

/** Exchanges a one-time code (docs/contract/social-login.md#one-time-code). A wrong verifier spends it: no guessing. */
export async function exchangeLoginCode(
  deps: SessionDeps,
  tx: Database,
  { code, codeVerifier, origin, now }: Omit<Origin, 'trace'> & { code: string; codeVerifier: string },
): Promise<ExchangedCode> {
  const taken = await redeemLoginCode(tx, { code, purpose: 'sign-in', now })
  if (taken.kind === 'refused') return taken
  const { userId, codeChallenge, isNewUser, connection, createdAt: begunAt } = taken.code
  if (!isVerifierRight(codeVerifier, codeChallenge)) return { kind: 'refused', reason: 'verifier_wrong', userId }
  const user = await loadUser(tx, userId).catch((error: unknown) => {
    if (error instanceof Problem) return undefined
    throw error
  })
  const byConnection = connection && (await findSessionRule(tx, { connection, now }))
  if (connection !== null && !byConnection) return { kind: 'refused', reason: 'connection_ended', userId }
  const rest = { ...(begunAt && { begunAt }), ...(byConnection && { byConnection }) }
  const signedIn =
    user && (await signIn(deps, tx, { user, origin, amr: ['fed'], ...rest, isNewUser, redirectUrl: null, now }))
  return signedIn ? { kind: 'signed-in', signIn: signedIn } : { kind: 'refused', reason: 'disabled', userId }
}

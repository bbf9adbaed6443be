import { type ConnectionId, isUuid, type SessionId, type UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { Random } from '../../base/random.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { AnswerCookie } from '../../http/route/outcome.ts'
import { findOwnFault } from '../../outbound/guarded-fetch.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { ConnectionEngines } from '../connection/connection-engines.ts'
import {
  type CallbackParameters,
  type Engine,
  type EngineRefusal,
  EngineUnavailable,
  type ProviderIdentity,
} from '../engine/engine.ts'
import type { FlowCookies } from '../pages/browser/flow-cookie.ts'
import { checkRedirectUrl, type RedirectRules } from '../sign-in/outcome/redirect-url.ts'
import { leadsToDecision } from './flow/engine-session.ts'
import { FLOW_LIFETIME_MS, issueState, readState } from './flow/flow-state.ts'
import {
  consumeFlow,
  countOpenFlows,
  findFlow,
  insertFlow,
  keepPostedName,
  type LoginFlow,
  type NewFlow,
} from './flow/login-flow.store.ts'
import { readPostedName } from './flow/posted-name.ts'

/** Dependencies of starting and finishing a flow. */
export interface FlowDeps {
  engine: Engine
  /** The engines of the connections of accounts, whose ids are names of providers too. */
  connections: ConnectionEngines
  keyring: Keyring
  random: Random
  flowCookies: FlowCookies
  redirectRules: () => RedirectRules
  baseUrl: () => string
}

/** Maximum number of open sign-ins of one connection: each keeps a row for ten minutes, and anybody can start one. */
const OPEN_FLOWS_LIMIT = 5_000

const buildUnknown = () =>
  new Problem('provider_unknown', 'There is no sign-in provider of this name, or it is not enabled.')

/** Checks that a provider of the configuration is enabled. Throws 404 `provider_unknown`, which lists none. */
export function checkProvider({ engine }: Pick<FlowDeps, 'engine'>, name: string): void {
  if (!engine.listProviders().some((provider) => provider.name === name)) throw buildUnknown()
}

/** The engine of a provider of the configuration, or of a connection by its id. Throws 404 `provider_unknown`. */
export async function loadEngine(
  deps: Pick<FlowDeps, 'engine' | 'connections'>,
  db: Database,
  name: string,
): Promise<Engine> {
  if (!isUuid(name)) {
    checkProvider(deps, name)
    return deps.engine
  }
  const found = await deps.connections.find(db, name)
  if (!found) throw buildUnknown()
  return found
}

/** The name of a provider as users read it. Throws 404. */
export async function loadLabel(deps: FlowDeps, db: Database, name: string) {
  const engine = await loadEngine(deps, db, name)
  return engine.listProviders().find((provider) => provider.name === name)
}

/** The address to which a provider sends the browser back. One for each provider (RFC 9700 section 4.4.2). */
export function buildCallbackUrl(baseUrl: string, provider: string): string {
  return `${baseUrl}/api/v3/auth/login/oauth/${provider}/callback`
}

/** A flow started at the provider, and not stored yet. */
export interface BegunFlow {
  flow: NewFlow
  redirectUrl: string
  /** The cookies that bind the flow to its browser; none of a flow that any browser may finish. */
  cookies: AnswerCookie[]
}

/** A browser, by the `Cookie` header of its request. */
export interface FlowBrowser {
  cookieHeader: string | undefined
}

/**
 * Begins a flow (docs/contract/social-login.md#start), outside any transaction, because it may wait for the provider;
 * `keepFlow` stores it. `browser` is null for a flow that any browser may finish.
 * Throws 404, 422 `redirect_url_not_allowed`, 422 for a challenge without a deep link, 429 for a
 * connection with too many open flows, 503.
 */
export async function beginFlow(
  deps: FlowDeps,
  db: Database,
  input: {
    provider: string
    redirectUrl: string
    codeChallenge: string | null
    browser: FlowBrowser | null
    linkTo: UserId | null
    /** The session that a connection proves. Such a flow is bound to a browser. */
    proves?: SessionId
    now: Date
  },
): Promise<BegunFlow> {
  const { provider, proves = null, now } = input
  // A user belongs to a connection by its sign-in alone.
  if (input.linkTo !== null) checkProvider(deps, provider)
  const engine = await loadEngine(deps, db, provider)
  const connection = isUuid(provider) ? (provider as ConnectionId) : null
  const target = checkRedirectUrl(input.redirectUrl, deps.redirectRules())
  if (input.codeChallenge !== null && target.kind === 'web') throw buildChallengeProblem()
  const { state, hash, expiresAt } = issueState(deps, provider, now)
  const callbackUrl = buildCallbackUrl(deps.baseUrl(), provider)
  const open = connection && (await countOpenFlows(db, { connection, now, limit: OPEN_FLOWS_LIMIT }))
  if ((open ?? 0) >= OPEN_FLOWS_LIMIT)
    throw new Problem('rate_limited', 'Too many sign-ins by this connection are open. Try again in some minutes.', {
      headers: { 'retry-after': '60' },
      reason: 'open_flows',
    })
  const started = await engine.start({ provider, state, callbackUrl, now }).catch((error: unknown) => {
    throw error instanceof EngineUnavailable ? buildUnavailable(error) : error
  })
  const flow: NewFlow = {
    stateHash: hash,
    provider,
    connection,
    linkTo: input.linkTo,
    proves,
    redirectUrl: target.url,
    isDeepLink: target.kind === 'deep-link',
    isBound: input.browser !== null,
    secret: deps.keyring.seal(JSON.stringify(started.secret), sealContext(hash)),
    codeChallenge: input.codeChallenge,
    expiresAt,
  }
  const begun = { id: state, lifetimeSeconds: FLOW_LIFETIME_MS / 1000, now }
  const cookies = input.browser === null ? [] : deps.flowCookies.begin(input.browser.cookieHeader, begun)
  return { redirectUrl: started.redirectUrl, flow, cookies }
}

/** Stores a started flow, with the last statement of the transaction. */
export function keepFlow(db: Database, { flow }: BegunFlow, now: Date): Promise<void> {
  return insertFlow(db, { ...flow, now })
}

/** The encryption context of the answer that a provider posted for a flow. */
export const answerContextOf = (stateHash: Buffer) => `login-flow-answer:${stateHash.toString('hex')}`

const sealContext = (stateHash: Buffer) => `login-flow:${stateHash.toString('hex')}`

function buildChallengeProblem(): Problem {
  const message = 'is for a redirect_url with a custom scheme; remove it.'
  return new Problem('validation_failed', `code_challenge: ${message}`, {
    errors: [{ path: 'code_challenge', code: 'without_deep_link', message }],
  })
}

function buildUnavailable(error: EngineUnavailable): Problem {
  const whose = findOwnFault(error)
    ? 'This service cannot ask the sign-in provider'
    : 'The sign-in provider does not answer'
  return new Problem('dependency_unavailable', `${whose} at the moment. Try again soon.`, {
    headers: { 'retry-after': '10' },
    errors: [{ path: 'provider', code: 'no_answer', message: 'does not answer at the moment; try again soon' }],
    reason: error.message,
    cause: error,
  })
}

/** The reason for which a callback matches no valid flow of this browser. For the log and the audit log only. */
export type FlowRefusal =
  | 'state_missing'
  | 'state_forged'
  | 'state_unknown'
  | 'state_expired'
  | 'state_replayed'
  | 'foreign_browser'

/** Input of a callback. */
export interface Callback {
  provider: string
  state: string | undefined
  cookies: string | undefined
  now: Date
}

/** A flow, or the reason for none. `flow` is set where the refusal may be reported to its `redirect_url`. */
export type FoundFlow = { flow: LoginFlow } | { reason: FlowRefusal; flow?: LoginFlow }

/** Reads the flow of a callback without consuming it. */
export async function inspectFlow(deps: FlowDeps, db: Database, callback: Callback): Promise<FoundFlow> {
  const { provider, now } = callback
  const state = readState(deps.keyring, callback.state, { provider, now })
  if ('reason' in state) return state
  const flow = await findFlow(db, { stateHash: state.hash, provider })
  if (!flow) return { reason: state.isExpired ? 'state_expired' : 'state_unknown' }
  // The cookie stays until it expires: a browser that comes again is led back to its app.
  if (flow.isBound && !deps.flowCookies.isOwn(callback.cookies, callback.state)) return { reason: 'foreign_browser' }
  if (flow.consumedAt) return { reason: 'state_replayed', flow }
  return flow.expiresAt <= now ? { reason: 'state_expired', flow } : { flow }
}

/** Stores the posted name of a flow, found by its state alone: the post has no cookie. Completes nothing. */
export async function takePostedForm(
  deps: FlowDeps,
  db: Database,
  input: { provider: string; state: string | undefined; user: string | undefined; now: Date },
): Promise<void> {
  const { provider, now } = input
  await loadEngine(deps, db, provider)
  const state = readState(deps.keyring, input.state, { provider, now })
  const name = readPostedName(input.user)
  if (name !== null && 'hash' in state) await keepPostedName(db, { stateHash: state.hash, provider, name })
}

/** A returned flow, with the provider's answer. */
export type FinishedFlow =
  | {
      kind: 'proven'
      flow: LoginFlow
      identity: ProviderIdentity
      groups: readonly string[]
      /** The user's token at a managed engine, for a sign-in that leads to a decision there. */
      engineToken: string | undefined
    }
  | { kind: 'refused'; flow: LoginFlow | undefined; reason: FlowRefusal | EngineRefusal; detail: string | null }

/**
 * Finishes a flow: consumes its state, then calls the engine (docs/contract/social-login.md#callback-redirect). The
 * state is spent before the call, so that a repeated callback is answered once. Runs outside any transaction, because
 * it waits for another server.
 */
export async function finishFlow(
  deps: FlowDeps,
  db: Database,
  input: Callback & { parameters: CallbackParameters },
): Promise<FinishedFlow> {
  const { provider, now } = input
  const engine = await loadEngine(deps, db, provider)
  const found = await inspectFlow(deps, db, input)
  const refuse = (reason: FlowRefusal, flow?: LoginFlow): FinishedFlow => ({
    kind: 'refused',
    flow,
    reason,
    detail: null,
  })
  if ('reason' in found) return refuse(found.reason, found.flow)
  const { stateHash } = found.flow
  const flow = await consumeFlow(db, { stateHash, provider, now })
  if (!flow) return refuse('state_replayed', found.flow)
  const result = await engine.complete({
    provider,
    state: input.state ?? '',
    secret: JSON.parse(deps.keyring.open(flow.secret, sealContext(flow.stateHash))) as Record<string, string>,
    callbackUrl: buildCallbackUrl(deps.baseUrl(), provider),
    callback: input.parameters,
    postedName: flow.postedName,
    postedAnswer: flow.postedAnswer && deps.keyring.open(flow.postedAnswer, answerContextOf(flow.stateHash)),
    keepsSession: leadsToDecision(flow, deps.baseUrl()),
    now,
  })
  if (result.kind === 'refused') return { kind: 'refused', flow, reason: result.reason, detail: result.detail }
  const { identity, groups = [], token: engineToken } = result
  return { kind: 'proven', flow, identity, groups, engineToken }
}

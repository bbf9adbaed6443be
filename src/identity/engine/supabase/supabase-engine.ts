import { createHash } from 'node:crypto'
import type { Random } from '../../../base/random.ts'
import { findOwnFault, GuardedFetchError } from '../../../outbound/guarded-fetch.ts'
import { asFacts, type ProviderFacts } from '../embedded/provider/provider-declaration.ts'
import {
  type CallbackParameters,
  type Engine,
  type EngineCompletion,
  type EngineProvider,
  type EngineRefusal,
  type EngineResult,
  type EngineStart,
  EngineUnavailable,
  type StartedFlow,
} from '../engine.ts'
import type { SupabaseAnswer, SupabaseClient } from './supabase-client.ts'
import { readSupabaseIdentity, toEngineName } from './supabase-identity.ts'

/** A provider that the operator enabled, and whether its verified addresses count. */
export interface SupabaseProvider extends Omit<EngineProvider, 'leavesToken'> {
  isEmailTrusted: boolean
}

export interface SupabaseEngineDeps {
  client: SupabaseClient
  providers: readonly SupabaseProvider[]
  random: Random
}

/** Parameters of a start besides those of every provider: scopes that the server leaves out, and the choice of an account. */
const PARAMETERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  google: { prompt: 'select_account' },
  microsoft: { scopes: 'email profile', prompt: 'select_account' },
}

/** Maximum age of an access token in a fragment, the lifetime of a flow. In seconds. */
const TOKEN_AGE_LIMIT_SECONDS = 600

const DECLINING = ['user_banned', 'signup_disabled', 'email_provider_disabled']

/** Prefix of the error description when the provider shared no address; the code is that of every fault. */
const NO_ADDRESS = 'Error getting user email from external provider'

/**
 * Builds the engine that speaks to providers through Supabase Auth (docs/contract/social-login.md#supabase-engine). Always
 * PKCE, with the verifier on this server: the `state` of Supabase Auth is not bound to a browser, and its codes are. Our own
 * state is part of the address that it returns to.
 */
export function buildSupabaseEngine(deps: SupabaseEngineDeps): Engine {
  const { providers } = deps
  return {
    listProviders: () => providers.map(({ name, label }) => ({ name, label, leavesToken: true })),
    start: (input) => startFlow(deps, input),
    complete: async (input) => {
      try {
        return await completeFlow(deps, input)
      } catch (error) {
        const reason = findOwnFault(error) ? 'own_fault' : 'provider_fault'
        return refuse(reason, error instanceof GuardedFetchError ? error.code : 'UNKNOWN')
      }
    },
  }
}

/**
 * Begins a flow at the server, and answers where it sends the browser. This service calls the server itself: with the
 * challenge a browser could begin the same flow at another provider, and complete it as an identity of that one.
 */
async function startFlow(
  { client, random }: SupabaseEngineDeps,
  { provider, state, callbackUrl }: EngineStart,
): Promise<StartedFlow> {
  const verifier = random.bytes(32).toString('base64url')
  const returnTo = new URL(callbackUrl)
  returnTo.searchParams.set('state', state)
  const answer = await client
    .beginAuthorization({
      provider: toEngineName(provider),
      redirect_to: returnTo.href,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 's256',
      ...PARAMETERS[provider],
    })
    .catch((cause: unknown) => {
      const code = cause instanceof GuardedFetchError ? cause.code : 'UNKNOWN'
      throw new EngineUnavailable(`Supabase Auth was not reached: ${code}`, { cause })
    })
  if (!answer.ok)
    throw new EngineUnavailable(`Supabase Auth begins no sign-in with ${toEngineName(provider)}: ${answer.code}`)
  return { redirectUrl: String(answer.data.location), secret: { verifier } }
}

function refuse(reason: EngineRefusal, detail: string): EngineResult {
  return { kind: 'refused', reason, detail }
}

/** Redeems the code, reads the user again, and ends the session of the engine unless a decision needs it. */
async function completeFlow(deps: SupabaseEngineDeps, input: EngineCompletion): Promise<EngineResult> {
  const { client } = deps
  const { callback } = input
  if (callback.error !== undefined) return classifyCallbackError(callback.error, callback)
  const token = await obtainToken(client, input)
  if (typeof token !== 'string') return token
  if (isClientToken(token)) return refuse('profile_invalid', 'CLIENT_TOKEN')
  // The exchange of a code ignores a ban that came after the callback; this call does not.
  const user = await client.readUser(token)
  const result = user.ok ? readResult(deps, input, user.data) : classifyAnswer(user, 'profile_invalid')
  if (result.kind === 'identity' && input.keepsSession) return { ...result, token }
  await client.endSession(token).catch(() => {})
  return result
}

function readResult(
  { providers }: SupabaseEngineDeps,
  { provider, callback }: EngineCompletion,
  user: ProviderFacts,
): EngineResult {
  const isEmailTrusted = providers.find(({ name }) => name === provider)?.isEmailTrusted ?? false
  const isProviderKnown = callback.code !== undefined
  const identity = readSupabaseIdentity(user, { provider, isEmailTrusted, isProviderKnown })
  return typeof identity === 'string' ? refuse('profile_invalid', identity) : { kind: 'identity', identity }
}

async function obtainToken(
  client: SupabaseClient,
  { callback, secret, now }: EngineCompletion,
): Promise<string | EngineResult> {
  const { code, accessToken } = callback
  if (code !== undefined) {
    const answer = await client.redeemCode(code, secret.verifier ?? '')
    // Only the access-token hook forbids the exchange of a valid code.
    if (!answer.ok) return classifyAnswer(answer, answer.status === 403 ? 'engine_refused' : 'code_refused')
    const token = answer.data.access_token
    return typeof token === 'string' ? token : refuse('provider_fault', 'NO_ACCESS_TOKEN')
  }
  if (accessToken === undefined) return refuse('callback_incomplete', 'NO_CODE')
  const { iat, amr } = readClaims(accessToken)
  if (!(now.getTime() / 1000 - Number(iat) <= TOKEN_AGE_LIMIT_SECONDS))
    return refuse('callback_incomplete', 'TOKEN_NOT_FRESH')
  return isOfProvider(amr) ? accessToken : refuse('profile_invalid', 'TOKEN_OF_NO_PROVIDER')
}

/** Whether the methods of a token are consistent with a sign-in at a provider: a password there proves no identity. */
function isOfProvider(amr: unknown): boolean {
  return !Array.isArray(amr) || amr.some((item) => asFacts(item).method === 'oauth')
}

/** The claims of a token, unverified: the server verifies the token when it is used. */
function readClaims(token: string): ProviderFacts {
  try {
    return asFacts(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()))
  } catch {
    return {}
  }
}

/** Whether a token was issued to an OAuth client. Such a token is a full one for the server, and no sign-in here. */
function isClientToken(token: string): boolean {
  return readClaims(token).client_id !== undefined
}

function classifyCallbackError(
  error: string,
  { errorCode, errorDescription }: Pick<CallbackParameters, 'errorCode' | 'errorDescription'>,
): EngineResult {
  const detail = (errorCode ?? error).replace(/[^\w.-]/g, '_').slice(0, 64)
  // A provider's own error comes without a code of the engine.
  if (errorCode === undefined) return refuse(error === 'access_denied' ? 'denied' : 'provider_fault', detail)
  if (DECLINING.includes(errorCode)) return refuse('engine_refused', detail)
  if (errorCode === 'provider_email_needs_verification') return refuse('email_unverified', detail)
  return refuse(errorDescription?.startsWith(NO_ADDRESS) ? 'email_missing' : 'provider_fault', detail)
}

function classifyAnswer(answer: Extract<SupabaseAnswer, { ok: false }>, otherwise: EngineRefusal): EngineResult {
  if (DECLINING.includes(answer.code)) return refuse('engine_refused', answer.code)
  return refuse(answer.status >= 500 || answer.status === 429 ? 'provider_fault' : otherwise, answer.code)
}

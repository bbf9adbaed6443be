import { createHash } from 'node:crypto'
import { GuardedFetchError } from '../../outbound/guarded-fetch.ts'
import type { Random } from '../../random.ts'
import { cleanName, cleanProfile } from '../embedded/clean-profile.ts'
import { asFacts, type ProviderFacts } from '../embedded/provider-declaration.ts'
import type { Engine, EngineCompletion, EngineProvider, EngineRefusal, EngineResult } from '../engine.ts'
import type { SupabaseAnswer, SupabaseClient } from './supabase-client.ts'

/** A provider that the operator enabled, and whether its verified addresses count. */
export interface SupabaseProvider extends EngineProvider {
  isEmailTrusted: boolean
}

export interface SupabaseEngineDeps {
  client: SupabaseClient
  providers: readonly SupabaseProvider[]
  random: Random
}

/** The names that Supabase Auth gives to providers, where they differ. A provider of any other name is a custom one there. */
const ENGINE_NAMES: Readonly<Record<string, string>> = {
  google: 'google',
  apple: 'apple',
  microsoft: 'azure',
  github: 'github',
  facebook: 'facebook',
  linkedin: 'linkedin_oidc',
  gitlab: 'gitlab',
  discord: 'discord',
}

/** Scopes that a provider needs besides those of Supabase Auth. */
const SCOPES: Readonly<Record<string, string>> = { microsoft: 'email' }

/** The oldest access token of a fragment: a flow lives no longer. In seconds. */
const TOKEN_AGE_LIMIT_SECONDS = 600

/** Errors with which the engine declines the person itself. */
const DECLINING = ['user_banned', 'signup_disabled', 'provider_email_needs_verification', 'email_provider_disabled']

/** The name of a provider at Supabase Auth. */
function toEngineName(provider: string): string {
  return ENGINE_NAMES[provider] ?? `custom:${provider}`
}

/**
 * Builds the engine that speaks to providers through Supabase Auth (docs/contract/social-login.md#supabase-engine). Always
 * PKCE, with the verifier on this server: the `state` of Supabase Auth is not bound to a browser, and its codes are. Our own
 * state is part of the address that it returns to.
 */
export function buildSupabaseEngine(deps: SupabaseEngineDeps): Engine {
  const { client, providers, random } = deps
  return {
    listProviders: () => providers.map(({ name, label }) => ({ name, label })),
    start: async ({ provider, state, callbackUrl }) => {
      const verifier = random.bytes(32).toString('base64url')
      const returnTo = new URL(callbackUrl)
      returnTo.searchParams.set('state', state)
      const scopes = SCOPES[provider]
      const redirectUrl = client.buildAuthorizeUrl({
        provider: toEngineName(provider),
        redirect_to: returnTo.href,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 's256',
        ...(scopes !== undefined && { scopes }),
      })
      return { redirectUrl, secret: { verifier } }
    },
    complete: async (input) => {
      try {
        return await completeFlow(deps, input)
      } catch (error) {
        return refuse('provider_fault', error instanceof GuardedFetchError ? error.code : 'UNKNOWN')
      }
    },
  }
}

function refuse(reason: EngineRefusal, detail: string): EngineResult {
  return { kind: 'refused', reason, detail }
}

/**
 * Redeems the code, asks for the person once more, and ends the session of the engine, unless the caller needs it for a
 * decision.
 */
async function completeFlow(deps: SupabaseEngineDeps, input: EngineCompletion): Promise<EngineResult> {
  const { error, errorCode } = input.callback
  if (error !== undefined) return classifyCallbackError(error, errorCode)
  const token = await obtainToken(deps.client, input)
  if (typeof token !== 'string') return token
  if (isClientToken(token)) return refuse('profile_invalid', 'CLIENT_TOKEN')
  // The exchange of a code ignores a ban that came after the callback; this call does not.
  const user = await deps.client.readUser(token)
  const result = user.ok ? readIdentity(deps, input.provider, user.data) : classifyAnswer(user, 'profile_invalid')
  if (result.kind === 'identity' && input.keepsSession) return { ...result, token }
  await deps.client.endSession(token).catch(() => {})
  return result
}

async function obtainToken(
  client: SupabaseClient,
  { callback, secret, now }: EngineCompletion,
): Promise<string | EngineResult> {
  const { code, accessToken } = callback
  if (code !== undefined) {
    const answer = await client.redeemCode(code, secret.verifier ?? '')
    if (!answer.ok) return classifyAnswer(answer, 'code_refused')
    const token = answer.data.access_token
    return typeof token === 'string' ? token : refuse('provider_fault', 'NO_ACCESS_TOKEN')
  }
  if (accessToken === undefined) return refuse('callback_incomplete', 'NO_CODE')
  const issuedAt = Number(readClaims(accessToken).iat)
  const isFresh = now.getTime() / 1000 - issuedAt <= TOKEN_AGE_LIMIT_SECONDS
  return isFresh ? accessToken : refuse('callback_incomplete', 'TOKEN_NOT_FRESH')
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

function classifyCallbackError(error: string, errorCode: string | undefined): EngineResult {
  const detail = (errorCode ?? error).replace(/[^\w.-]/g, '_').slice(0, 64)
  if (errorCode !== undefined && DECLINING.includes(errorCode)) return refuse('engine_refused', detail)
  // A provider's own error comes without a code of the engine.
  return refuse(errorCode === undefined && error === 'access_denied' ? 'denied' : 'provider_fault', detail)
}

function classifyAnswer(answer: Extract<SupabaseAnswer, { ok: false }>, otherwise: EngineRefusal): EngineResult {
  if (DECLINING.includes(answer.code)) return refuse('engine_refused', answer.code)
  return refuse(answer.status >= 500 || answer.status === 429 ? 'provider_fault' : otherwise, answer.code)
}

/**
 * The identity at the provider of this flow, of which a user there may have several. `user_metadata` is overwritten by each
 * provider, and the server links unverified addresses, so only the identity's own data count.
 */
function readIdentity({ providers }: SupabaseEngineDeps, provider: string, user: ProviderFacts): EngineResult {
  const name = toEngineName(provider)
  const identities = Array.isArray(user.identities) ? user.identities.map(asFacts) : []
  const own = identities.filter((one) => one.provider === name)
  const latest = own.toSorted((a, b) =>
    String(b.last_sign_in_at ?? '').localeCompare(String(a.last_sign_in_at ?? '')),
  )[0]
  const data = asFacts(latest?.identity_data)
  const isTrusted = providers.find((one) => one.name === provider)?.isEmailTrusted ?? false
  const profile = {
    subject: data.sub ?? latest?.id,
    email: data.email,
    isEmailVerified: data.email_verified === true,
    name: cleanName(data.full_name) ?? data.name,
    avatarUrl: data.avatar_url ?? data.picture,
  }
  const identity = cleanProfile(provider, profile, isTrusted)
  if (!identity) return refuse('profile_invalid', 'NO_IDENTITY')
  return {
    kind: 'identity',
    identity: typeof user.id === 'string' ? { ...identity, engineSubject: user.id } : identity,
  }
}

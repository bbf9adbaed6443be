import { createHash } from 'node:crypto'
import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  fetchProtectedResource,
  fetchUserInfo,
} from 'openid-client'
import type { Random } from '../../../base/random.ts'
import {
  type Engine,
  type EngineCompletion,
  type EngineResult,
  type EngineStart,
  EngineUnavailable,
  type ProviderIdentity,
  type StartedFlow,
} from '../engine.ts'
import { classifyErrorParameter, classifyFault, type Fault } from './classify-fault.ts'
import { cleanName, cleanProfile } from './clean-profile.ts'
import type { EnabledProvider, ProviderFacts, ReadResource } from './provider/provider-declaration.ts'
import { buildServerCache, type FindServer, type ProviderServerDeps } from './provider-server.ts'

/** Random bytes of a PKCE verifier and of a nonce: 43 characters in base64url (RFC 7636 section 4.1). */
const SECRET_BYTES = 32

interface ProviderAccess {
  random: Random
  findServer: FindServer
}

export interface EmbeddedEngineDeps extends ProviderServerDeps {
  providers: readonly EnabledProvider[]
  random: Random
}

/**
 * Builds the embedded engine: this service is itself the client of each provider, by `openid-client`
 * (docs/contract/social-login.md#embedded-engine). PKCE S256, nonce, signature and issuer of the ID token, and the issuer
 * of the answer (RFC 9207) are checked wherever the provider supports them.
 */
export function buildEmbeddedEngine(deps: EmbeddedEngineDeps): Engine {
  const providers = new Map(deps.providers.map((provider) => [provider.name, provider]))
  const findServer = buildServerCache(deps)
  const load = (name: string) => {
    const provider = providers.get(name)
    if (!provider) throw new Error(`the engine has no provider ${name}`)
    return provider
  }
  return {
    listProviders: () =>
      deps.providers.map(({ name, declaration }) => ({ name, label: declaration.label, leavesToken: false })),
    start: (input) => startAt({ random: deps.random, findServer }, load(input.provider), input),
    complete: (input) => completeAt(findServer, load(input.provider), input),
  }
}

/** Begins a sign-in at one provider. Throws an `EngineUnavailable` when its endpoints cannot be read. */
export async function startAt(
  { random, findServer }: ProviderAccess,
  provider: EnabledProvider,
  input: EngineStart,
): Promise<StartedFlow> {
  try {
    return startFlow(random, provider, { ...input, server: await findServer(provider) })
  } catch (error) {
    throw new EngineUnavailable(`${provider.name}: ${classifyFault(error, 'profile').detail}`, { cause: error })
  }
}

function startFlow(
  random: Random,
  { declaration }: EnabledProvider,
  { state, callbackUrl, server }: EngineStart & { server: Configuration },
): StartedFlow {
  const draw = () => random.bytes(SECRET_BYTES).toString('base64url')
  const verifier = declaration.hasPkce === false ? undefined : draw()
  const hasNonce = declaration.protocol.kind === 'openid' && declaration.hasNonce !== false
  const nonce = hasNonce ? draw() : undefined
  const url = buildAuthorizationUrl(server, {
    ...declaration.parameters,
    redirect_uri: callbackUrl,
    scope: declaration.scope,
    state,
    ...(verifier !== undefined && {
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }),
    ...(nonce !== undefined && { nonce }),
  })
  return {
    redirectUrl: url.href,
    secret: { ...(verifier !== undefined && { verifier }), ...(nonce !== undefined && { nonce }) },
  }
}

/** Completes a sign-in at one provider: checks the answer, redeems the code, reads the profile. Never throws. */
export async function completeAt(
  findServer: FindServer,
  provider: EnabledProvider,
  input: EngineCompletion,
): Promise<EngineResult> {
  const refuse = ({ reason, detail }: Fault): EngineResult => ({ kind: 'refused', reason, detail })
  const { protocol } = provider.declaration
  let stage: Parameters<typeof classifyFault>[1] = protocol.kind === 'openid' ? 'openid token' : 'oauth token'
  try {
    const server = await findServer(provider)
    const fault = findAnswerFault(server, input)
    if (fault) return refuse(fault)
    const tokens = await authorizationCodeGrant(server, buildAnswerUrl(input), {
      expectedState: input.state,
      ...(input.secret.verifier !== undefined && { pkceCodeVerifier: input.secret.verifier }),
      ...(input.secret.nonce !== undefined && { expectedNonce: input.secret.nonce }),
      idTokenExpected: protocol.kind === 'openid',
    })
    const issuedAt = tokens.claims()?.iat
    const limit = provider.declaration.tokenAgeSeconds
    if (limit !== undefined && Math.abs(input.now.getTime() / 1000 - (issuedAt ?? 0)) > limit)
      return refuse({ reason: 'id_token_invalid', detail: 'TOKEN_TOO_OLD' })
    stage = 'profile'
    const facts = await readFacts(server, provider, { accessToken: tokens.access_token, claims: tokens.claims() })
    const identity = readIdentity(provider, facts, input.postedName)
    if (!identity) return refuse({ reason: 'profile_invalid', detail: 'NO_SUBJECT' })
    const groups = provider.declaration.readGroups?.(facts)
    return { kind: 'identity', identity, ...(groups && { groups }) }
  } catch (error) {
    return refuse(classifyFault(error, stage))
  }
}

/** Checks the parameters before anything is sent: a code for another provider must not reach this one (mix-up). */
function findAnswerFault(server: Configuration, { callback }: EngineCompletion): Fault | undefined {
  const { issuer, authorization_response_iss_parameter_supported: sendsIssuer } = server.serverMetadata()
  if (callback.iss === undefined ? sendsIssuer : callback.iss !== issuer)
    return { reason: 'issuer_mismatch', detail: callback.iss === undefined ? 'ISS_MISSING' : 'ISS_DIFFERS' }
  if (callback.error !== undefined) return classifyErrorParameter(callback.error)
  if (callback.code === undefined) return { reason: 'callback_incomplete', detail: 'NO_CODE' }
  return undefined
}

/** The answer as the URL that `openid-client` reads; without its query it is the `redirect_uri`. */
function buildAnswerUrl({ callbackUrl, state, callback }: EngineCompletion): URL {
  const url = new URL(callbackUrl)
  url.searchParams.set('state', state)
  if (callback.code !== undefined) url.searchParams.set('code', callback.code)
  if (callback.iss !== undefined) url.searchParams.set('iss', callback.iss)
  return url
}

/** The claims of the ID token, completed by the userinfo endpoint when they have no address; or the API of the provider. */
async function readFacts(
  server: Configuration,
  { declaration, client, base }: EnabledProvider,
  { accessToken, claims }: { accessToken: string; claims: ProviderFacts | undefined },
): Promise<ProviderFacts> {
  const { protocol } = declaration
  if (protocol.kind === 'oauth')
    return protocol.readFacts({ read: buildReader(server, accessToken), base: base?.(), client, accessToken })
  if (!claims || typeof claims.sub !== 'string') return {}
  const { groupsClaim } = declaration
  const isWhole = claims.email !== undefined && (groupsClaim === undefined || claims[groupsClaim] !== undefined)
  if (isWhole || server.serverMetadata().userinfo_endpoint === undefined) return claims
  // Throws when its subject is another one (OpenID Connect Core 1.0 section 5.3.2).
  const more = await fetchUserInfo(server, accessToken, claims.sub)
  return { ...more, ...claims }
}

function buildReader(server: Configuration, accessToken: string): ReadResource {
  return async (resource, query = {}) => {
    const url = new URL(resource)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const headers = new Headers({ accept: 'application/json' })
    const answer = await fetchProtectedResource(server, accessToken, url, 'GET', undefined, headers)
    if (answer.status !== 200) throw new Error(`${url.pathname} answered ${answer.status}`)
    return answer.json()
  }
}

function readIdentity(
  { name, declaration, isEmailTrusted }: EnabledProvider,
  facts: ProviderFacts,
  postedName: string | null,
): ProviderIdentity | undefined {
  const identity = cleanProfile(name, declaration.readProfile(facts), isEmailTrusted)
  return identity && { ...identity, name: identity.name ?? cleanName(postedName) }
}

import { type Configuration, errors, interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider'
import type { GuardedFetch } from '../../outbound/guarded-fetch.ts'
import { CLAIMS_OF_SCOPES, type ProviderAccount, toProviderAccount } from '../claims/account-claims.ts'
import { ACR_VALUES, type AskedClaims, findNeededAcrs, limitAskedClaims } from '../claims/asked-claims.ts'
import { DEFAULT_SETTINGS } from '../client/client.ts'
import { CLIENT_ALGORITHMS } from '../client/client-proof.ts'
import { findGrantIdOf } from '../grant/state-id.ts'
import { FAMILY_SECONDS } from '../grant/token-family-members.ts'
import { decideTokenClaims } from '../hook/token-hook.ts'
import { SCOPES } from '../scope/scope-catalogue.ts'
import type { SigningJwk } from '../signing-key/signing-key.ts'
import { keepClientKeys, refuseLongAssertion } from './client-keys.ts'
import { ENTRY_POINTS } from './entry-points.ts'
import { INTERACTION_SECONDS, RESUME_COOKIE } from './interaction-cookie.ts'
import { LocalSigningKey } from './local-signing-key.ts'
import type { ProviderPages } from './provider-pages.ts'
import { buildAdapter, type StateDeps } from './state/adapter.ts'
import { type ReadDeps, readUserClaims } from './state/state-reader.ts'
import { type ProviderRevocations, readRevocationFacts } from './token-family/revocations.ts'
import { findTokenFamily, type TokenFamilyDeps } from './token-family/token-family.ts'

/** Lifetimes in seconds. Access tokens are short-lived: an API that checks the signature alone sees no revocation. */
const LIFETIMES = {
  AccessToken: 900,
  AuthorizationCode: 60,
  DeviceCode: 600,
  Grant: FAMILY_SECONDS,
  IdToken: 3600,
  Interaction: INTERACTION_SECONDS,
  RefreshToken: 30 * 24 * 3600,
}

/** A provider session without a user: it has the data of a form. */
const STRANGER_SESSION_SECONDS = 1800

/** Dependencies of the configuration. */
export interface ConfigurationDeps extends StateDeps, TokenFamilyDeps {
  jwks: readonly SigningJwk[]
  cookieKeys: readonly string[]
  cookies: { isSecure: boolean; isHostBound: boolean }
  pages: ProviderPages
  revocations: ProviderRevocations
  fetch: GuardedFetch
  /** Whether a client may register itself (RFC 7591). */
  isRegistrationOpen: boolean
  /** Whether a confidential client may omit PKCE: for the certification plans only. */
  isPkceOptional: boolean
}

/** Builds the configuration of the library: what the service allows, and how it decides. */
export function buildConfiguration(deps: ConfigurationDeps): Configuration {
  const { cookies, pages } = deps
  const fetch = keepClientKeys(deps.fetch, () => deps.machineClock.now())
  return {
    adapter: buildAdapter(deps),
    jwks: { keys: deps.jwks.map((key) => new LocalSigningKey(key)) },
    routes: ENTRY_POINTS,
    ttl: {
      ...LIFETIMES,
      Session: (_ctx, session) => (session.accountId === undefined ? STRANGER_SESSION_SECONDS : FAMILY_SECONDS),
    },
    scopes: SCOPES.map(({ name }) => name),
    acrValues: [...ACR_VALUES],
    claims: { acr: null, auth_time: null, iss: null, sid: null, amr: null, ...CLAIMS_OF_SCOPES },
    responseTypes: ['code'],
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
    assertJwtClientAuthClaimsAndHeader: refuseLongAssertion(() => deps.machineClock.now()),
    clientDefaults: {
      grant_types: ['authorization_code', 'refresh_token'],
      // Default of a client that registers itself and names none (OpenID Connect Registration section 2).
      id_token_signed_response_alg: 'RS256',
      scope: DEFAULT_SETTINGS.scopes.join(' '),
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_basic',
    },
    enabledJWA: {
      clientAuthSigningAlgValues: [...CLIENT_ALGORITHMS],
      idTokenSigningAlgValues: ['ES256', 'RS256'],
      userinfoSigningAlgValues: ['ES256', 'RS256'],
      dPoPSigningAlgValues: ['ES256', 'EdDSA', 'Ed25519'],
    },
    extraClientMetadata: { properties: ['first_party', 'publisher'], validator: refuseReserved },
    cookies: {
      keys: [...deps.cookieKeys],
      names: { session: cookies.isHostBound ? '__Host-signalbox_oauth' : 'signalbox_oauth', resume: RESUME_COOKIE },
      long: { httpOnly: true, sameSite: 'lax', secure: cookies.isSecure, signed: true, path: '/' },
    },
    pkce: { required: (_ctx, client) => !deps.isPkceOptional || client.tokenEndpointAuthMethod === 'none' },
    allowOmittingSingleRegisteredRedirectUri: false,
    rotateRefreshToken: ({ oidc }) => !isBound(oidc.client),
    // Revoking an access token also revokes its family and the session of the app (RFC 7009 section 2.1).
    revokeGrantPolicy: async () => true,
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: async (_ctx, source) => !source.scopes.has('offline_access'),
    findAccount: async (ctx, subject) => {
      const user = await readUserClaims(deps, subject, ctx)
      if (user) return toProviderAccount(user)
      if (ctx.oidc.route === 'token') await deps.revocations.recordRefusedUser(subject, readRevocationFacts(ctx))
      return undefined
    },
    loadExistingGrant: (ctx) => findTokenFamily(deps, ctx) as never,
    extraTokenClaims: async (ctx, token) => addClaims(ctx.oidc.account as ProviderAccount | undefined, token as never),
    interactions: { url: (_ctx, interaction) => `/auth/oauth?id=${interaction.uid}`, policy: buildPolicy() },
    clientBasedCORS: allowOwnOrigin,
    renderError: pages.renderError,
    features: buildFeatures(deps),
    fetch: ((url: string | URL, options: { method?: string; headers?: HeadersInit; body?: unknown }) =>
      fetch(String(url), {
        method: options.method ?? 'GET',
        headers: Object.fromEntries(new Headers(options.headers)),
        ...(options.body !== undefined && { body: String(options.body) }),
      })) as never,
  }
}

function buildFeatures(deps: ConfigurationDeps): NonNullable<Configuration['features']> {
  const { apiResource, ids, pages, isRegistrationOpen } = deps
  const scope = SCOPES.map(({ name }) => name).join(' ')
  return {
    claimsParameter: { enabled: true, assertClaimsParameter: takeClaims },
    devInteractions: { enabled: false },
    externalSigningSupport: { enabled: true, ack: 'experimental-01' },
    backchannelLogout: { enabled: true },
    clientCredentials: { enabled: false },
    deviceFlow: {
      enabled: true,
      userCodeInputSource: pages.showCodeInput,
      userCodeConfirmSource: pages.showCodeConfirm,
      successSource: pages.showDeviceSuccess,
    },
    dPoP: { enabled: true },
    introspection: {
      enabled: true,
      // No token of a disabled or deleted user is active.
      allowedPolicy: async (ctx, client, token) =>
        token.clientId === client.clientId && (await isOfActiveUser(deps, ctx, token)),
    },
    pushedAuthorizationRequests: { enabled: true },
    registration: {
      enabled: isRegistrationOpen,
      idFactory: () => ids.next<'oauth client'>(),
      issueRegistrationAccessToken: false,
    },
    resourceIndicators: {
      enabled: true,
      defaultResource: async () => apiResource,
      useGrantedResource: async () => true,
      getResourceServerInfo: async (_ctx, resource) => {
        if (resource !== apiResource) throw new errors.InvalidTarget()
        return {
          scope,
          audience: apiResource,
          accessTokenTTL: LIFETIMES.AccessToken,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }
      },
    },
    revocation: { enabled: true, allowedPolicy: async (_ctx, client, token) => token.clientId === client.clientId },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: pages.showSignOut,
      postLogoutSuccessSource: pages.showSignedOut,
    },
    userinfo: { enabled: true },
  }
}

async function isOfActiveUser(deps: ReadDeps, ctx: KoaContextWithOIDC, token: object): Promise<boolean> {
  const { accountId } = token as { accountId?: string }
  return accountId === undefined || (await readUserClaims(deps, accountId, ctx)) !== undefined
}

/** Members that an administrator decides: a client that registers itself may not give them. */
function refuseReserved(ctx: KoaContextWithOIDC | undefined, key: string, value: unknown): void {
  if (ctx?.oidc?.route === 'registration' && value !== undefined)
    throw new errors.InvalidClientMetadata(`${key} is set by an administrator`)
}

/**
 * Reduces the parameter `claims` to the claims that the client may request. An unknown class of sign-in (`acr`) fails
 * at once, since no sign-in could meet it (OpenID Connect Core section 5.5.1.1).
 */
async function takeClaims(
  ctx: KoaContextWithOIDC,
  claims: object,
  client: { scope?: string | undefined },
): Promise<void> {
  const asked = claims as AskedClaims
  const needed = findNeededAcrs(asked)
  if (needed && !ACR_VALUES.some((value) => needed.includes(value)))
    throw new errors.CustomOIDCProviderError(
      'unmet_authentication_requirements',
      `acr must be one of ${ACR_VALUES.join(', ')}`,
    )
  const { params } = ctx.oidc
  if (params) params.claims = JSON.stringify(limitAskedClaims(asked, (client.scope ?? '').split(' ')))
}

/**
 * Whether a client authenticates by a key and has its tokens bound to one: a refresh token is then useless to others,
 * and does not rotate (FAPI 2.0 Security Profile section 5.3.2.1).
 */
const isBound = (client: KoaContextWithOIDC['oidc']['client']): boolean =>
  client?.tokenEndpointAuthMethod === 'private_key_jwt' && client.dpopBoundAccessTokens === true

/** A browser app may read its tokens and userinfo from the origin of one of its redirect URIs. */
function allowOwnOrigin(
  _ctx: KoaContextWithOIDC,
  origin: string,
  client: { redirectUris?: readonly string[] | undefined },
): boolean {
  return origin !== 'null' && (client.redirectUris ?? []).some((uri) => URL.parse(uri)?.origin === origin)
}

/** The questions to the user. A choice of the account is one, since many clients ask for it. */
function buildPolicy(): interactionPolicy.DefaultPolicy {
  const policy = interactionPolicy.base()
  policy.add(new interactionPolicy.Prompt({ name: 'select_account', requestable: true }), 0)
  return policy
}

/** Claims that the hook adds to a token (docs/contract/oauth-exchange.md#access-token-hook), for this account. */
function addClaims(
  account: ProviderAccount | undefined,
  token: { accountId?: string; clientId: string; grantId?: string; scopes: Set<string> },
): Record<string, unknown> {
  const { accountId, clientId, grantId } = token
  if (accountId === undefined || grantId === undefined) return {}
  const subject = account?.accountId === accountId ? account.subject : undefined
  const decision = decideTokenClaims({ subject, client: { id: clientId, scope: [...token.scopes].join(' ') } })
  if (decision.kind === 'refuse') throw new errors.InvalidGrant('the user may not get a token')
  return { ...decision.claims, grant_id: findGrantIdOf(grantId) }
}

import { randomUUID } from 'node:crypto'
import { errors, type KoaContextWithOIDC } from 'oidc-provider'
import { describe, expect, test } from 'vitest'
import type { GuardedFetch } from '../../outbound/guarded-fetch.ts'
import { toProviderAccount } from '../claims/account-claims.ts'
import type { UserClaims } from '../claims/user-claims.store.ts'
import { buildConfiguration, type ConfigurationDeps } from './configuration.ts'
import { findRequestState } from './state/request-state.ts'

/** What the library gets, and what it decides with it. */

const API = 'https://login.example.com/api'
const userId = randomUUID()
const USER = {
  ...{ id: userId, email: 'ada@example.com', isEmailVerified: true, name: null, avatarUrl: null },
  ...{ updatedAt: new Date(0), firstAccount: null },
} as unknown as UserClaims

type Parts = Partial<Record<'isRegistrationOpen' | 'isPkceOptional' | 'isSecure' | 'isHostBound', boolean>>

function build({ isRegistrationOpen = true, isPkceOptional = false, isSecure = true, isHostBound = true }: Parts = {}) {
  const refused: unknown[] = []
  const asked: unknown[] = []
  const deps = {
    ...{ jwks: [], cookieKeys: ['key'], cookies: { isSecure, isHostBound }, pages: {}, apiResource: API },
    ...{ isRegistrationOpen, isPkceOptional, machineClock: { now: () => 0 }, ids: { next: () => 'id' } },
    revocations: { recordRefusedUser: async (...given: unknown[]) => refused.push(given) },
    fetch: (async (url: string, options: object) => {
      asked.push([url, options])
      return new Response('{}')
    }) as GuardedFetch,
  } as unknown as ConfigurationDeps
  return { configuration: buildConfiguration(deps), refused, asked }
}

// The types of the library ask for whole models; these tests give what is read of them.
// biome-ignore lint/suspicious/noExplicitAny: as above
const { configuration } = build() as { configuration: any }
const { features } = configuration

/** A request whose user the process has read: `users` by their subject. */
function open(route: string, users: Record<string, UserClaims | undefined> = { [userId]: USER }) {
  const ctx = {
    ...{ ip: '10.0.0.1', req: {}, res: { getHeader: () => undefined } },
    oidc: { route, client: { clientId: 'app' }, params: {} as Record<string, unknown> },
  }
  const { users: known } = findRequestState(ctx as unknown as KoaContextWithOIDC)
  for (const [subject, user] of Object.entries(users)) known.set(subject, user)
  return ctx
}

test('the library has on what the service documents, and nothing else', () => {
  const states = (parts: Parts) => {
    const all = build(parts).configuration.features as Record<string, { enabled: boolean }>
    return Object.fromEntries(Object.entries(all).map(([name, { enabled }]) => [name, enabled]))
  }
  const expected = {
    ...{ claimsParameter: true, devInteractions: false, externalSigningSupport: true, backchannelLogout: true },
    ...{ clientCredentials: false, deviceFlow: true, dPoP: true, introspection: true, userinfo: true },
    ...{ pushedAuthorizationRequests: true, registration: true, resourceIndicators: true, revocation: true },
    rpInitiatedLogout: true,
  }
  expect(states({})).toEqual(expected)
  expect(states({ isRegistrationOpen: false })).toEqual({ ...expected, registration: false })
  expect(features.registration).toMatchObject({ issueRegistrationAccessToken: false })
  expect(configuration).toMatchObject({ allowOmittingSingleRegisteredRedirectUri: false, responseTypes: ['code'] })
})

test('each kind of state lives as long as the documentation says, in seconds', () => {
  const { Session, ...rest } = configuration.ttl
  expect(rest).toMatchObject({
    ...{ AccessToken: 900, AuthorizationCode: 60, DeviceCode: 600, IdToken: 3_600, Interaction: 1_800 },
    RefreshToken: 2_592_000,
  })
  expect([Session({}, {}), Session({}, { accountId: userId })]).toEqual([1_800, rest.Grant])
})

test('cookies are signed, out of reach of scripts, and of this host alone where it can be', () => {
  const of = (parts: Parts) => build(parts).configuration.cookies!
  expect(of({})).toMatchObject({
    names: { session: '__Host-signalbox_oauth' },
    long: { httpOnly: true, sameSite: 'lax', secure: true, signed: true, path: '/' },
  })
  expect(of({ isSecure: false, isHostBound: false })).toMatchObject({
    ...{ names: { session: 'signalbox_oauth' }, long: { secure: false } },
  })
})

test('PKCE is for every client, but those of a certification that have a secret', () => {
  const isRequired = (isPkceOptional: boolean, tokenEndpointAuthMethod: string) =>
    (build({ isPkceOptional }).configuration.pkce!.required as (...given: unknown[]) => boolean)(
      ...[{}, { tokenEndpointAuthMethod }],
    )
  expect([isRequired(false, 'none'), isRequired(false, 'client_secret_basic')]).toEqual([true, true])
  expect([isRequired(true, 'none'), isRequired(true, 'client_secret_basic')]).toEqual([true, false])
})

describe('a refresh token', () => {
  test.each([
    ['a client with a secret', { tokenEndpointAuthMethod: 'client_secret_basic', dpopBoundAccessTokens: true }, true],
    ['one with a key whose tokens are not bound', { tokenEndpointAuthMethod: 'private_key_jwt' }, true],
    ['one with both', { tokenEndpointAuthMethod: 'private_key_jwt', dpopBoundAccessTokens: true }, false],
    ['none', undefined, true],
  ])('of %s rotates: %s', (_name, client, isRotated) => {
    expect(configuration.rotateRefreshToken({ oidc: { client } })).toBe(isRotated)
  })

  test('ends with the session unless it was granted beyond it, and is for clients that may have one', async () => {
    const ends = (...scopes: string[]) => configuration.expiresWithSession({}, { scopes: new Set(scopes) })
    expect([await ends('openid'), await ends('openid', 'offline_access')]).toEqual([true, false])
    const issues = (types: string[]) =>
      configuration.issueRefreshToken({}, { grantTypeAllowed: (type: string) => types.includes(type) })
    expect([await issues(['refresh_token']), await issues(['authorization_code'])]).toEqual([true, false])
  })

  test('is of a family, which a revocation of any of its tokens ends', async () => {
    expect(await configuration.revokeGrantPolicy()).toBe(true)
  })
})

describe('the account of a subject', () => {
  test('is that of its user', async () => {
    expect(await configuration.findAccount(open('token'), userId)).toMatchObject({ accountId: userId })
  })

  test('is none of a user who is gone, which is recorded where a token was asked for', async () => {
    for (const [route, isRecorded] of [
      ['token', true],
      ['userinfo', false],
    ] as const) {
      const { configuration: own, refused } = build()
      const ctx = open(route, { [userId]: undefined })
      expect(await own.findAccount!(ctx as never, userId)).toBeUndefined()
      const facts = { clientId: 'app', address: '10.0.0.1', requestId: null }
      expect(refused).toEqual(isRecorded ? [[userId, facts]] : [])
    }
  })
})

describe('a question about a token', () => {
  const isActive = (token: object, users?: Record<string, UserClaims | undefined>) =>
    features.introspection.allowedPolicy(open('introspection', users), { clientId: 'app' }, token)

  test('is answered to its own client, while its user is active', async () => {
    const token = { clientId: 'app', accountId: userId }
    expect(await isActive(token)).toBe(true)
    expect(await isActive({ ...token, clientId: 'other' })).toBe(false)
    expect(await isActive(token, { [userId]: undefined })).toBe(false)
    expect(await isActive({ clientId: 'app' })).toBe(true)
  })

  test('and its revocation is for its own client', async () => {
    const { allowedPolicy } = features.revocation
    const token = { clientId: 'app' }
    expect(await allowedPolicy({}, { clientId: 'app' }, token)).toBe(true)
    expect(await allowedPolicy({}, { clientId: 'other' }, token)).toBe(false)
  })
})

test('the API is the only resource, also when none is named', async () => {
  const { defaultResource, useGrantedResource, getResourceServerInfo } = features.resourceIndicators
  expect([await defaultResource(), await useGrantedResource()]).toEqual([API, true])
  expect(await getResourceServerInfo({}, API)).toMatchObject({ audience: API, accessTokenFormat: 'jwt' })
  await expect(getResourceServerInfo({}, `${API}/`)).rejects.toThrow(errors.InvalidTarget)
})

test('a client that registers itself sets nothing that an administrator decides', () => {
  const set = (route: string | undefined, value: unknown) =>
    configuration.extraClientMetadata.validator(route && open(route), 'publisher', value)
  expect(() => set('registration', 'Acme')).toThrow(errors.InvalidClientMetadata)
  expect(() => set('registration', undefined)).not.toThrow()
  expect(() => set('token', 'Acme')).not.toThrow()
  expect(() => set(undefined, 'Acme')).not.toThrow()
})

describe('the parameter claims', () => {
  const take = async (claims: object, scope?: string) => {
    const ctx = open('authorization')
    await features.claimsParameter.assertClaimsParameter(ctx, claims, { scope })
    return JSON.parse(ctx.oidc.params.claims as string)
  }

  test('keeps what a scope of the client opens', async () => {
    const claims = { userinfo: { email: null, name: null } }
    expect(await take(claims, 'openid email')).toEqual({ userinfo: { email: null } })
    expect(await take(claims)).toEqual({ userinfo: {} })
    const ctx = { oidc: {} }
    await features.claimsParameter.assertClaimsParameter(ctx, claims, {})
    expect(ctx).toEqual({ oidc: {} })
  })

  test('fails at once for a class of sign-in that none meets', async () => {
    const ask = (...values: string[]) => take({ id_token: { acr: { essential: true, values } } })
    await expect(ask('aal3')).rejects.toMatchObject({ error: 'unmet_authentication_requirements' })
    for (const values of [['aal1'], ['aal2'], ['aal3', 'aal2']]) await expect(ask(...values)).resolves.toBeDefined()
  })
})

test('an app of a browser reads from the origins of its redirect URIs', () => {
  const allows = (origin: string, redirectUris?: string[]) =>
    configuration.clientBasedCORS({}, origin, { redirectUris })
  const uris = ['https://app.example.com/back', 'https://other.example.com:8443/', 'com.example.app:/back', 'none']
  expect(allows('https://app.example.com', uris)).toBe(true)
  expect(allows('https://other.example.com:8443', uris)).toBe(true)
  for (const origin of ['https://other.example.com', 'http://app.example.com', 'null'])
    expect(allows(origin, uris)).toBe(false)
  expect(allows('https://app.example.com')).toBe(false)
})

test('the choice of an account is asked first, where a client requests it', () => {
  const [first] = configuration.interactions.policy
  expect(first).toMatchObject({ name: 'select_account', requestable: true })
  expect(configuration.interactions.url({}, { uid: 'uid' })).toBe('/auth/oauth?id=uid')
})

describe('the claims of an access token', () => {
  const add = (token: object, account: object | undefined = toProviderAccount(USER)) =>
    configuration.extraTokenClaims({ oidc: { account } }, { clientId: 'app', scopes: new Set(['openid']), ...token })

  test('have its grant', async () => {
    expect(await add({ accountId: userId, grantId: 'grant.family' })).toMatchObject({ grant_id: 'grant' })
  })

  test('are none of a token without a user or a grant', async () => {
    expect([await add({ grantId: 'grant.family' }), await add({ accountId: userId })]).toEqual([{}, {}])
  })

  test.each([
    ['another user', toProviderAccount({ ...USER, id: randomUUID() as UserClaims['id'] })],
    ['nobody', null],
  ])('are refused where the request is of %s', async (_name, account) => {
    await expect(add({ accountId: userId, grantId: 'grant.family' }, account ?? ({} as object))).rejects.toThrow(
      errors.InvalidGrant,
    )
  })
})

test('what the library fetches goes by the guarded way out', async () => {
  const { configuration: own, asked } = build()
  const fetch = own.fetch as unknown as (url: string | URL, options: object) => Promise<Response>
  await fetch(new URL('https://app.example.com/keys'), { headers: new Headers({ accept: 'a' }) })
  await fetch('https://app.example.com/out', { method: 'POST', body: new URLSearchParams({ a: 'b' }) })
  expect(asked).toEqual([
    ['https://app.example.com/keys', { method: 'GET', headers: { accept: 'a' } }],
    ['https://app.example.com/out', { method: 'POST', headers: {}, body: 'a=b' }],
  ])
})

import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { jwtVerify } from 'jose'
import Provider, { type Adapter, type AdapterPayload, type Configuration, type KoaContextWithOIDC } from 'oidc-provider'
import { answerParent } from './child-process.ts'
import { BENCH_CLIENT, BENCH_REDIRECT_URI, EXCHANGE_GRANT } from './oauth-client.ts'

/**
 * The baseline: `oidc-provider` with its adapter in memory, set up to issue the same tokens as the service. One user is
 * always signed in and has allowed the one client.
 */
const ACCOUNT = '00000000-0000-7000-8000-000000000001'
const SCOPE = 'openid email offline_access contract:read'

const KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

/**
 * Keeps everything in one map. The adapter that `oidc-provider` has itself keeps 1,000 entries, so that a round loses its
 * grant, and looks through all tokens of a grant with each new one.
 */
function buildAdapters(): (model: string) => Adapter {
  const stored = new Map<string, AdapterPayload>()
  const findBy = (matches: (payload: AdapterPayload) => boolean) => [...stored.values()].find(matches)
  return (model) => ({
    upsert: async (id, payload) => void stored.set(`${model} ${id}`, payload),
    find: async (id) => stored.get(`${model} ${id}`),
    findByUid: async (uid) => findBy((payload) => payload.uid === uid),
    findByUserCode: async (userCode) => findBy((payload) => payload.userCode === userCode),
    consume: async (id) => void Object.assign(stored.get(`${model} ${id}`) ?? {}, { consumed: 1 }),
    destroy: async (id) => void stored.delete(`${model} ${id}`),
    revokeByGrantId: async (grantId) => {
      for (const [key, payload] of stored) if (payload.grantId === grantId) stored.delete(key)
    },
  })
}

function buildConfiguration(resource: string): Configuration {
  const jwk = KEY.export({ format: 'jwk' })
  let grantId: string | undefined
  return {
    adapter: buildAdapters(),
    jwks: { keys: [{ ...jwk, alg: 'ES256', use: 'sig' } as never] },
    clients: [
      {
        ...BENCH_CLIENT,
        redirect_uris: [BENCH_REDIRECT_URI],
        grant_types: ['authorization_code', 'refresh_token', EXCHANGE_GRANT],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    cookies: { keys: ['bench'] },
    scopes: SCOPE.split(' '),
    claims: { email: ['email', 'email_verified'] },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    expiresWithSession: async () => false,
    findAccount: async (_ctx, sub) => ({ accountId: sub, claims: async () => ({ sub, email: 'bench@example.com' }) }),
    loadExistingGrant: async ({ oidc }: KoaContextWithOIDC) => {
      if (grantId !== undefined) return oidc.provider.Grant.find(grantId)
      const grant = new oidc.provider.Grant({ accountId: ACCOUNT, clientId: BENCH_CLIENT.client_id })
      grant.addOIDCScope(SCOPE)
      grant.addResourceScope(resource, SCOPE)
      grantId = await grant.save()
      return grant
    },
    features: {
      devInteractions: { enabled: false },
      introspection: { enabled: true, allowedPolicy: async () => true },
      resourceIndicators: {
        enabled: true,
        defaultResource: async () => resource,
        useGrantedResource: async () => true,
        getResourceServerInfo: async () => ({
          scope: SCOPE,
          audience: resource,
          accessTokenTTL: 900,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
    ttl: {
      AccessToken: 900,
      AuthorizationCode: 60,
      Grant: 86_400,
      IdToken: 3600,
      RefreshToken: 86_400,
      Session: 86_400,
    },
  }
}

/** Signs the user in with every request, as the service does from the session of the browser. */
function signInAlways(provider: Provider): void {
  const model = provider.Session as unknown as {
    get(ctx: KoaContextWithOIDC): Promise<{ accountId?: string; loginAccount(details: object): void }>
    instantiate(payload: object): { accountId?: string; loginAccount(details: object): void }
  }
  const getOwn = model.get.bind(model)
  model.get = async (ctx) => {
    const found = await getOwn(ctx)
    if (found.accountId !== undefined) return found
    const session = model.instantiate({})
    session.loginAccount({ accountId: ACCOUNT })
    ctx.oidc.entity('Session', session)
    return session
  }
}

/** Exchanges an access token for another one (RFC 8693): `oidc-provider` leaves this grant type to its user. */
function addExchange(provider: Provider, resource: string): void {
  const key = createPublicKey(KEY)
  const exchange = async (ctx: KoaContextWithOIDC) => {
    const { client, params } = ctx.oidc
    const { payload } = await jwtVerify(String(params?.subject_token), key, { audience: resource })
    if (!client || payload.sub === undefined) throw new Error('the token names nobody')
    const token = new provider.AccessToken({ client, accountId: payload.sub, gty: EXCHANGE_GRANT } as never)
    token.resourceServer = new provider.ResourceServer(resource, {
      scope: SCOPE,
      audience: resource,
      accessTokenTTL: 900,
      accessTokenFormat: 'jwt',
      jwt: { sign: { alg: 'ES256' } },
    } as never)
    Object.assign(token, { scope: String(payload.scope) })
    ctx.body = { access_token: await token.save(), token_type: 'Bearer', expires_in: token.expiration }
  }
  provider.registerGrantType(EXCHANGE_GRANT, exchange, ['subject_token', 'subject_token_type'])
}

answerParent(async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const issuer = `http://127.0.0.1:${port}`
  const provider = new Provider(issuer, buildConfiguration(`${issuer}/api`))
  signInAlways(provider)
  addExchange(provider, `${issuer}/api`)
  server.on('request', provider.callback())
  return { issuer }
})

import { readConfig } from '../../../src/app/config/config.ts'
import { listPages } from '../../../src/app/feature/pages.ts'
import { ROUTE_TREE } from '../../../src/app/feature/route-tree.ts'
import type { RouteDeclaration } from '../../../src/http/route/route.ts'
import { type OauthClient, REDIRECT_URI } from '../browser/oauth-service.ts'

/** A request of somebody without a sign-in. */
export interface StrangerRequest {
  method: string
  path: string
  form?: Record<string, string>
  json?: object
  headers?: Record<string, string>
  /** Whether it is refused for want of a token, whatever else it says. */
  needsToken?: boolean
}

const PASSWORD = 'correct horse battery'
const JUNK_TOKEN = 'x'.repeat(43)

/** Every route that the service declares: of the API, and the pages. */
function listAllRoutes(): RouteDeclaration[] {
  const config = readConfig({ APP_ENV: 'development' }, '/nowhere')
  return [...ROUTE_TREE, ...listPages(config).flatMap((feature) => feature.routes)]
}

/** A request to each declared route that names the provider `dev` and says nothing that is right. */
export function listJunkRequests(): StrangerRequest[] {
  const ofRoutes = listAllRoutes().map(({ method, path, page, access }): StrangerRequest => {
    const target = { path: path.replace(/\{\w+\}/g, 'dev'), needsToken: !page && access !== 'public' }
    if (method === 'GET') return { method, ...target }
    return { method, ...target, ...(page ? { form: { a: 'b' } } : { json: {} }) }
  })
  const acs = '/api/v3/auth/login/saml/01890000-0000-7000-8000-000000000001/acs'
  return [...ofRoutes, { method: 'POST', path: acs, form: { SAMLResponse: 'junk' } }]
}

/** An authorization request of a client, as its parameters. */
const buildAuthorization = (client: OauthClient) => ({
  client_id: client.id,
  response_type: 'code',
  redirect_uri: REDIRECT_URI,
  scope: 'openid',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWWaWaWaWaWaW',
  code_challenge_method: 'S256',
})

/** Requests of the right shape to what a stranger may ask; most have a wrong credential. */
export function listShapedRequests({ client, email }: { client: OauthClient; email: string }): StrangerRequest[] {
  const auth = '/api/v3/auth'
  const oauth = '/api/v3/oauth'
  const request = buildAuthorization(client)
  const posts: [string, Pick<StrangerRequest, 'form' | 'json' | 'headers'>][] = [
    [`${auth}/login/local`, { json: { email, password: 'wrong horse battery' } }],
    [`${auth}/login/local`, { json: { email: 'nobody@example.com', password: 'wrong horse battery' } }],
    [`${auth}/password/forgot`, { json: { email } }],
    [`${auth}/password/forgot`, { json: { email: 'nobody@example.com' } }],
    [`${auth}/password/reset`, { json: { token: JUNK_TOKEN, password: PASSWORD } }],
    [`${auth}/sign-up`, { json: { email } }],
    [`${auth}/sign-up`, { json: { email: 'somebody-new@example.com' } }],
    [`${auth}/sign-up/confirm`, { json: { token: JUNK_TOKEN, password: PASSWORD } }],
    [`${auth}/login/mail`, { json: { email } }],
    [`${auth}/login/mail`, { json: { email: 'nobody@example.com' } }],
    [`${auth}/login/mail/confirm`, { json: { login: JUNK_TOKEN, code: '12345678' } }],
    [`${auth}/email/verify`, { json: { token: JUNK_TOKEN } }],
    [`${auth}/login/passkey/options`, { json: {} }],
    [`${auth}/session/refresh`, { json: { refresh_token: 'sbr_junk' } }],
    [`${auth}/sso/exchange`, { json: { token: 'junk' } }],
    [`${auth}/login/code`, { json: { code: 'junk' } }],
    [`${auth}/invitation/accept`, { json: { token: JUNK_TOKEN } }],
    [`${oauth}/par`, { form: request }],
    [`${oauth}/device-authorization`, { form: { client_id: client.id } }],
    [`${oauth}/device`, { form: { user_code: 'BBBB-BBBB' } }],
    [`${oauth}/register`, { json: { redirect_uris: [REDIRECT_URI] } }],
    [`${oauth}/token`, { form: { client_id: client.id, grant_type: 'refresh_token', refresh_token: 'junk' } }],
    [`${oauth}/introspect`, { form: { client_id: client.id, token: 'junk' } }],
    [`${oauth}/revoke`, { form: { client_id: client.id, token: 'junk' } }],
  ]
  const gets = [
    `${auth}/login/oauth/dev?redirect_url=${encodeURIComponent('http://localhost:4711/')}`,
    `${auth}/login/oauth/dev/callback?state=junk&code=junk`,
    `${oauth}/authorize?${new URLSearchParams(request)}`,
    `${oauth}/device`,
    `${oauth}/end-session`,
  ]
  return [
    ...posts.map(([path, body]) => ({ method: 'POST', path, ...body })),
    ...gets.map((path) => ({ method: 'GET', path })),
  ]
}

/** Requests that the provider refuses, with a client that it knows and one that it does not. */
export function listRefusedOauthRequests({ client }: { client: OauthClient }): StrangerRequest[] {
  const oauth = '/api/v3/oauth'
  const request = buildAuthorization(client)
  const basic = { authorization: `Basic ${Buffer.from(`${client.id}:wrong`).toString('base64')}` }
  const redirect_uri = 'https://elsewhere.example/'
  const forms: [string, Record<string, string>][] = [
    ['par', { ...request, redirect_uri }],
    ['par', { ...request, client_id: 'nobody' }],
    ['device-authorization', { client_id: 'nobody' }],
    ['token', { client_id: client.id, grant_type: 'authorization_code', code: 'junk', redirect_uri: REDIRECT_URI }],
    [
      'token',
      { client_id: client.id, grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: 'junk' },
    ],
    ['token', { client_id: client.id, grant_type: 'client_credentials' }],
    ['token', { client_id: 'nobody', grant_type: 'refresh_token', refresh_token: 'junk' }],
    ['introspect', { client_id: 'nobody', token: 'junk' }],
    ['revoke', { client_id: 'nobody', token: 'junk' }],
    ['exchange', { token: 'junk' }],
  ]
  const authorize = (changed: Record<string, string>) =>
    `${oauth}/authorize?${new URLSearchParams({ ...request, ...changed })}`
  return [
    ...forms.map(([name, form]) => ({ method: 'POST', path: `${oauth}/${name}`, form })),
    ...forms.map(([name, form]) => ({ method: 'POST', path: `${oauth}/${name}`, form, headers: basic })),
    { method: 'POST', path: `${oauth}/register`, json: { redirect_uris: ['junk'] } },
    { method: 'POST', path: `${oauth}/exchange`, json: { token: 'junk' } },
    { method: 'GET', path: `${oauth}/userinfo`, headers: { authorization: 'Bearer junk' } },
    { method: 'GET', path: authorize({ client_id: 'nobody' }) },
    { method: 'GET', path: authorize({ redirect_uri }) },
    { method: 'GET', path: authorize({ request_uri: 'urn:ietf:params:oauth:request_uri:junk' }) },
    { method: 'GET', path: authorize({ prompt: 'none' }) },
    { method: 'GET', path: `${oauth}/end-session?id_token_hint=junk` },
    { method: 'POST', path: `${oauth}/end-session`, form: { id_token_hint: 'junk' } },
  ]
}

import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import * as openid from 'openid-client'

/** An app of somebody else: users sign in with their account at the service, and it reads their contracts there. */
const { SIGNALBOX_URL = 'http://localhost:3000', OAUTH_CLIENT_ID = '', ...env } = process.env
const { OAUTH_CLIENT_SECRET, PORT = '4711' } = env
const redirectUri = `http://127.0.0.1:${PORT}/callback`
// Only a service on this machine is reached without TLS.
const execute = SIGNALBOX_URL.startsWith('http://localhost:') ? [openid.allowInsecureRequests] : []
const issuer = new URL(`${SIGNALBOX_URL}/api/v3/oauth`)
const config = await openid.discovery(issuer, OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET, undefined, { execute })

/** The users who are signed in, by the cookie of their browser. */
const users = new Map<string, { who: string; name: string | undefined; idToken: string }>()
type Cookies = Map<string, string>
type Step = { location: string; cookies: string[] }

const toCookie = (name: string, value: string, seconds?: number) =>
  `${name}=${value}; HttpOnly; SameSite=Lax; Path=/${seconds === undefined ? '' : `; Max-Age=${seconds}`}`
/** Each sign-in has a cookie of its own: another tab does not end it. */
const nameSignIn = (state: string) => `sign_in_${state.slice(0, 8)}`

async function begin(cookies: Cookies): Promise<Step> {
  const [pkceCodeVerifier, state] = [openid.randomPKCECodeVerifier(), openid.randomState()]
  const begun = toCookie(nameSignIn(state), `${state}.${pkceCodeVerifier}`, 600)
  // 16 at most. A browser sends its oldest cookies first.
  const old = [...cookies.keys()].filter((name) => name.startsWith('sign_in_')).slice(0, -15)
  const code_challenge = await openid.calculatePKCECodeChallenge(pkceCodeVerifier)
  const proof = { scope: 'openid profile email contract:read', state, code_challenge, code_challenge_method: 'S256' }
  const location = openid.buildAuthorizationUrl(config, { redirect_uri: redirectUri, ...proof }).href
  return { location, cookies: [begun, ...old.map((name) => toCookie(name, '', 0))] }
}

/** Calls the API for the user of a token: the access token opens a session of the app, whose JWT the API takes. */
async function countContracts(token: string): Promise<string> {
  const [api, headers] = [`${SIGNALBOX_URL}/api/v3`, { 'content-type': 'application/json' }]
  const asked = { method: 'POST', headers, body: JSON.stringify({ token }) }
  const { jwt } = await (await fetch(`${api}/oauth/exchange`, asked)).json()
  const answer = await fetch(`${api}/contract/contract`, { headers: { authorization: `Bearer ${jwt}` } })
  return answer.ok ? `${(await answer.json()).data.length} contracts` : `no contracts (${answer.status})`
}

async function finish(cookies: Cookies, url: URL): Promise<Step> {
  const name = nameSignIn(url.searchParams.get('state') ?? '')
  const [expectedState = '', pkceCodeVerifier = ''] = cookies.get(name)?.split('.') ?? []
  if (!expectedState) return { location: '/', cookies: [] }
  const checks = { expectedState, pkceCodeVerifier, idTokenExpected: true }
  const tokens = await openid.authorizationCodeGrant(config, url, checks)
  const { name: full, email } = await openid.fetchUserInfo(config, tokens.access_token, tokens.claims()?.sub ?? '')
  const who = `${email}, ${await countContracts(tokens.access_token)}`
  // A new id: what was known before a sign-in counts no more after it.
  const id = randomUUID()
  users.delete(cookies.get('app') ?? '')
  users.set(id, { who, name: full, idToken: tokens.id_token ?? '' })
  return { location: '/', cookies: [toCookie('app', id), toCookie(name, '', 0)] }
}

/** Signs out here, and asks the service to sign out there. */
function leave(id: string): Step {
  const hint = users.get(id)?.idToken ?? ''
  users.delete(id)
  const asked = { id_token_hint: hint, post_logout_redirect_uri: new URL('/', redirectUri).href }
  return { location: hint ? openid.buildEndSessionUrl(config, asked).href : '/', cookies: [toCookie('app', '', 0)] }
}

const toHtml = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', redirectUri)
  const pairs = (request.headers.cookie ?? '').split('; ').map((pair) => pair.split('=') as [string, string])
  const cookies = new Map(pairs)
  const known = cookies.get('app') ?? ''
  try {
    const step = `${request.method} ${url.pathname}`
    const next = step === 'GET /sign-in' ? begin(cookies) : step === 'GET /callback' ? finish(cookies, url) : undefined
    const done = step === 'POST /sign-out' ? leave(known) : await next
    if (done) response.writeHead(303, { location: done.location, 'set-cookie': done.cookies })
    else response.setHeader('content-type', 'text/html; charset=utf-8')
    const { who, name } = users.get(known) ?? {}
    const out = '<form method="post" action="/sign-out"><button>Sign out</button></form>'
    const page = `<p id="who">Signed in as ${toHtml(who ?? '')}</p><p>Hello, ${toHtml(name ?? 'you')}.</p>${out}`
    response.end(who ? page : '<a href="/sign-in">Sign in</a>')
  } catch (error) {
    const text = `Not signed in: ${(error as { error?: string }).error ?? (error as Error).name}`
    response.writeHead(502, { 'content-type': 'text/plain', 'x-content-type-options': 'nosniff' }).end(text)
  }
}).listen(Number(PORT), '127.0.0.1', () => process.stdout.write(`The app is at http://127.0.0.1:${PORT}\n`))

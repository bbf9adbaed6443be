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

/** Sign-ins that have begun, and the users of those that are done, by the cookie of their browser. */
const begun = new Map<string, { pkceCodeVerifier: string; expectedState: string }>()
const users = new Map<string, { who: string; name: string | undefined; idToken: string }>()
type Step = { id: string; location: string }

/** Where a browser goes next, and its id from then on: what was known before a sign-in counts no more after it. */
async function begin(): Promise<Step> {
  const [id, pkceCodeVerifier, state] = [randomUUID(), openid.randomPKCECodeVerifier(), openid.randomState()]
  if (begun.size >= 1_000) begun.delete(begun.keys().next().value ?? '')
  begun.set(id, { pkceCodeVerifier, expectedState: state })
  const code_challenge = await openid.calculatePKCECodeChallenge(pkceCodeVerifier)
  const proof = { scope: 'openid profile email contract:read', state, code_challenge, code_challenge_method: 'S256' }
  return { id, location: openid.buildAuthorizationUrl(config, { redirect_uri: redirectUri, ...proof }).href }
}

/** Calls the API for the user of a token: the access token opens a session of the app, whose JWT the API takes. */
async function countContracts(token: string): Promise<string> {
  const [api, headers] = [`${SIGNALBOX_URL}/api/v3`, { 'content-type': 'application/json' }]
  const asked = { method: 'POST', headers, body: JSON.stringify({ token }) }
  const { jwt } = await (await fetch(`${api}/oauth/exchange`, asked)).json()
  const answer = await fetch(`${api}/contract/contract`, { headers: { authorization: `Bearer ${jwt}` } })
  return answer.ok ? `${(await answer.json()).data.length} contracts` : `no contracts (${answer.status})`
}

async function finish(before: string, url: URL): Promise<Step> {
  const [id, flow] = [randomUUID(), begun.get(before)]
  begun.delete(before)
  if (!flow) return { id, location: '/' }
  const tokens = await openid.authorizationCodeGrant(config, url, { ...flow, idTokenExpected: true })
  const { name, email } = await openid.fetchUserInfo(config, tokens.access_token, tokens.claims()?.sub ?? '')
  const who = `${email}, ${await countContracts(tokens.access_token)}`
  users.set(id, { who, name, idToken: tokens.id_token ?? '' })
  return { id, location: '/' }
}

/** Signs out here, and asks the service to sign out there. */
function leave(id: string): Step {
  const hint = users.get(id)?.idToken ?? ''
  users.delete(id)
  const asked = { id_token_hint: hint, post_logout_redirect_uri: new URL('/', redirectUri).href }
  return { id: randomUUID(), location: hint ? openid.buildEndSessionUrl(config, asked).href : '/' }
}

const toHtml = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', redirectUri)
  const known = /(?:^|; )app=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1] ?? ''
  try {
    const step = `${request.method} ${url.pathname}`
    const next = step === 'GET /sign-in' ? begin() : step === 'GET /callback' ? finish(known, url) : undefined
    const { id, location } = (step === 'POST /sign-out' ? leave(known) : await next) ?? {}
    if (location) response.writeHead(303, { location, 'set-cookie': `app=${id}; HttpOnly; SameSite=Lax; Path=/` })
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

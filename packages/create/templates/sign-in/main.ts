import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import * as openid from 'openid-client'

/** An app whose users sign in with Signalbox: authorization code flow with PKCE, sessions in memory. */
const {
  SIGNALBOX_URL = 'http://localhost:3000',
  OAUTH_CLIENT_ID = '',
  OAUTH_CLIENT_SECRET,
  PORT = '4711',
} = process.env
const origin = `http://127.0.0.1:${PORT}`
const redirectUri = `${origin}/callback`
if (OAUTH_CLIENT_ID === '')
  throw new Error('Run npm run connect first: it writes the id and the secret of this app to .env.')

// Only Signalbox on this machine is reached without TLS.
const isLocal = ['localhost', '127.0.0.1'].includes(new URL(SIGNALBOX_URL).hostname)
const execute = isLocal ? [openid.allowInsecureRequests] : []
const issuer = new URL(`${SIGNALBOX_URL}/api/v3/oauth`)
const config = await openid.discovery(issuer, OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET, undefined, { execute })

type User = { name: string; email: string; idToken: string }

/** By the cookie of the browser. An app of several processes keeps them in its database. */
const users = new Map<string, User>()

type Cookies = Map<string, string>

/** Where the browser goes next, and the cookies that it gets or loses. */
type Step = { location: string; cookies: string[] }

const SESSION = 'app'
const SIGN_IN = 'sign_in_'

/** Maximum number of sign-ins of a browser that are not finished. */
const OPEN_SIGN_INS = 16

/** A cookie; without `seconds` it lasts as long as the browser runs. */
const toCookie = (name: string, value: string, seconds?: number) =>
  `${name}=${value}; HttpOnly; SameSite=Lax; Path=/${seconds === undefined ? '' : `; Max-Age=${seconds}`}`

/** Each sign-in has a cookie of its own: another tab does not end it. It holds what the callback checks. */
const nameSignIn = (state: string) => SIGN_IN + state.slice(0, 8)

async function begin(cookies: Cookies): Promise<Step> {
  const [pkceCodeVerifier, state] = [openid.randomPKCECodeVerifier(), openid.randomState()]
  const url = openid.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope: 'openid profile email',
    state,
    code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  })
  const begun = toCookie(nameSignIn(state), `${state}.${pkceCodeVerifier}`, 600)
  const open = [...cookies.keys()].filter((name) => name.startsWith(SIGN_IN))
  // A browser sends its oldest cookies first.
  const ended = open.slice(0, 1 - OPEN_SIGN_INS).map((name) => toCookie(name, '', 0))
  return { location: url.href, cookies: [begun, ...ended] }
}

async function finish(cookies: Cookies, url: URL): Promise<Step> {
  const cookie = nameSignIn(url.searchParams.get('state') ?? '')
  const [expectedState, pkceCodeVerifier] = cookies.get(cookie)?.split('.') ?? []
  if (!expectedState || !pkceCodeVerifier) return { location: '/', cookies: [] }
  const checks = { expectedState, pkceCodeVerifier, idTokenExpected: true }
  const tokens = await openid.authorizationCodeGrant(config, url, checks)
  const { name, email } = await openid.fetchUserInfo(config, tokens.access_token, tokens.claims()?.sub ?? '')
  // A new id: what was known before a sign-in does not count after it.
  const id = randomUUID()
  users.delete(cookies.get(SESSION) ?? '')
  // Users who never sign out are forgotten, the oldest first.
  if (users.size >= 1_000) users.delete(users.keys().next().value ?? '')
  users.set(id, { name: name ?? 'you', email: email ?? '', idToken: tokens.id_token ?? '' })
  return { location: '/', cookies: [toCookie(SESSION, id), toCookie(cookie, '', 0)] }
}

/** Signs out here, and asks Signalbox to sign out there. */
function leave(id: string): Step {
  const user = users.get(id)
  users.delete(id)
  const cookies = [toCookie(SESSION, '', 0)]
  if (!user) return { location: '/', cookies }
  const hints = { id_token_hint: user.idToken, post_logout_redirect_uri: `${origin}/` }
  return { location: openid.buildEndSessionUrl(config, hints).href, cookies }
}

const toHtml = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

function renderPage(user: User | undefined): string {
  if (!user) return '<a href="/sign-in">Sign in</a>'
  const out = '<form method="post" action="/sign-out"><button>Sign out</button></form>'
  return `<p>Hello, ${toHtml(user.name)}.</p><p id="who">Signed in as ${toHtml(user.email)}</p>${out}`
}

createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', redirectUri)
  const pairs = (request.headers.cookie ?? '').split('; ').map((pair) => pair.split('=') as [string, string])
  const cookies = new Map(pairs)
  const session = cookies.get(SESSION) ?? ''
  try {
    let step: Step | undefined
    if (request.method === 'GET' && url.pathname === '/sign-in') step = await begin(cookies)
    if (request.method === 'GET' && url.pathname === '/callback') step = await finish(cookies, url)
    if (request.method === 'POST' && url.pathname === '/sign-out') step = leave(session)
    if (step) {
      response.writeHead(303, { location: step.location, 'set-cookie': step.cookies }).end()
      return
    }
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(`<!doctype html><title>My app</title>${renderPage(users.get(session))}`)
  } catch (error) {
    const text = `Not signed in: ${(error as { error?: string }).error ?? (error as Error).name}`
    response.writeHead(502, { 'content-type': 'text/plain', 'x-content-type-options': 'nosniff' }).end(text)
  }
}).listen(Number(PORT), '127.0.0.1', () => console.log(`The app is at ${origin}`))

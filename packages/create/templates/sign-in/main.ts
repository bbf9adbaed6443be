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

type SignIn = { pkceCodeVerifier: string; expectedState: string }
type User = { name: string; email: string; idToken: string }

/** By the cookie of the browser. An app of several processes keeps them in its database. */
const begun = new Map<string, SignIn>()
const users = new Map<string, User>()

/** Where the browser goes next, with a new cookie: what was known before a sign-in does not count after it. */
type Step = { cookie: string; location: string }

async function begin(): Promise<Step> {
  const [cookie, pkceCodeVerifier, expectedState] = [
    randomUUID(),
    openid.randomPKCECodeVerifier(),
    openid.randomState(),
  ]
  // Sign-ins that nobody finishes are forgotten, the oldest first.
  if (begun.size >= 1_000) begun.delete(begun.keys().next().value ?? '')
  begun.set(cookie, { pkceCodeVerifier, expectedState })
  const url = openid.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope: 'openid profile email',
    state: expectedState,
    code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  })
  return { cookie, location: url.href }
}

async function finish(before: string, url: URL): Promise<Step> {
  const signIn = begun.get(before)
  begun.delete(before)
  if (!signIn) return { cookie: randomUUID(), location: '/' }
  const tokens = await openid.authorizationCodeGrant(config, url, { ...signIn, idTokenExpected: true })
  const { name, email } = await openid.fetchUserInfo(config, tokens.access_token, tokens.claims()?.sub ?? '')
  const cookie = randomUUID()
  if (users.size >= 1_000) users.delete(users.keys().next().value ?? '')
  users.set(cookie, { name: name ?? 'you', email: email ?? '', idToken: tokens.id_token ?? '' })
  return { cookie, location: '/' }
}

/** Signs out here, and asks Signalbox to sign out there. */
function leave(cookie: string): Step {
  const user = users.get(cookie)
  users.delete(cookie)
  if (!user) return { cookie: randomUUID(), location: '/' }
  const hints = { id_token_hint: user.idToken, post_logout_redirect_uri: `${origin}/` }
  return { cookie: randomUUID(), location: openid.buildEndSessionUrl(config, hints).href }
}

const toHtml = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

function renderPage(user: User | undefined): string {
  if (!user) return '<a href="/sign-in">Sign in</a>'
  const out = '<form method="post" action="/sign-out"><button>Sign out</button></form>'
  return `<p>Hello, ${toHtml(user.name)}.</p><p id="who">Signed in as ${toHtml(user.email)}</p>${out}`
}

createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', redirectUri)
  const cookie = /(?:^|; )app=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1] ?? ''
  try {
    let step: Step | undefined
    if (request.method === 'GET' && url.pathname === '/sign-in') step = await begin()
    if (request.method === 'GET' && url.pathname === '/callback') step = await finish(cookie, url)
    if (request.method === 'POST' && url.pathname === '/sign-out') step = leave(cookie)
    if (step) {
      const set = `app=${step.cookie}; HttpOnly; SameSite=Lax; Path=/`
      response.writeHead(303, { location: step.location, 'set-cookie': set }).end()
      return
    }
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(`<!doctype html><title>My app</title>${renderPage(users.get(cookie))}`)
  } catch (error) {
    const text = `Not signed in: ${(error as { error?: string }).error ?? (error as Error).name}`
    response.writeHead(502, { 'content-type': 'text/plain', 'x-content-type-options': 'nosniff' }).end(text)
  }
}).listen(Number(PORT), '127.0.0.1', () => console.log(`The app is at ${origin}`))

import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import * as openid from 'openid-client'

/** An app of somebody else: people sign in with their account at the service, and it reads their contracts there. */
const { OAUTH_CLIENT_ID = '', OAUTH_CLIENT_SECRET, PORT = '4711' } = process.env
const { SIGNALBOX_URL = 'http://localhost:3000' } = process.env
const redirectUri = `http://127.0.0.1:${PORT}/callback`
// Only a service on this machine is reached without TLS.
const execute = SIGNALBOX_URL.startsWith('http://localhost:') ? [openid.allowInsecureRequests] : []
const issuer = new URL(`${SIGNALBOX_URL}/api/v3/oauth`)
const config = await openid.discovery(issuer, OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET, undefined, { execute })

/** Sign-ins that have begun, and the people of those that are done, by the cookie of their browser. */
const begun = new Map<string, { pkceCodeVerifier: string; expectedState: string }>()
const people = new Map<string, string>()

async function begin(id: string): Promise<string> {
  const [pkceCodeVerifier, state] = [openid.randomPKCECodeVerifier(), openid.randomState()]
  begun.set(id, { pkceCodeVerifier, expectedState: state })
  const code_challenge = await openid.calculatePKCECodeChallenge(pkceCodeVerifier)
  const scope = 'openid email contract:read'
  const proof = { state, code_challenge, code_challenge_method: 'S256' }
  return openid.buildAuthorizationUrl(config, { redirect_uri: redirectUri, scope, ...proof }).href
}

/** Calls the API for the person of a token: the access token opens a session of the app, whose JWT the API takes. */
async function countContracts(token: string): Promise<string> {
  const api = `${SIGNALBOX_URL}/api/v3`
  const [method, headers] = ['POST', { 'content-type': 'application/json' }]
  const opened = await fetch(`${api}/oauth/exchange`, { method, headers, body: JSON.stringify({ token }) })
  const { jwt } = await opened.json()
  const answer = await fetch(`${api}/contract/contract`, { headers: { authorization: `Bearer ${jwt}` } })
  return answer.ok ? `${(await answer.json()).data.length} contracts` : `no contracts (${answer.status})`
}

async function finish(id: string, url: URL): Promise<string> {
  const flow = begun.get(id)
  begun.delete(id)
  if (!flow) return '/'
  const tokens = await openid.authorizationCodeGrant(config, url, { ...flow, idTokenExpected: true })
  const { email } = await openid.fetchUserInfo(config, tokens.access_token, tokens.claims()?.sub ?? '')
  people.set(id, `${email}, ${await countContracts(tokens.access_token)}`.replace(/[&<"]/g, ''))
  return '/'
}

createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', redirectUri)
  const known = /(?:^|; )app=([\w-]+)/.exec(request.headers.cookie ?? '')?.[1]
  const id = url.pathname === '/sign-in' || !known ? randomUUID() : known
  response.setHeader('content-type', 'text/html; charset=utf-8')
  response.setHeader('set-cookie', `app=${id}; HttpOnly; SameSite=Lax; Path=/`)
  try {
    if (url.pathname === '/sign-in') response.writeHead(303, { location: await begin(id) })
    else if (url.pathname === '/callback') response.writeHead(303, { location: await finish(id, url) })
    response.end(people.has(id) ? `<p id="who">Signed in as ${people.get(id)}</p>` : '<a href="/sign-in">Sign in</a>')
  } catch (error) {
    response.writeHead(502).end(`Not signed in: ${(error as { error?: string }).error ?? (error as Error).name}`)
  }
}).listen(Number(PORT), '127.0.0.1', () => process.stdout.write(`The app is at http://127.0.0.1:${PORT}\n`))

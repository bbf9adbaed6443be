import { createHash } from 'node:crypto'

/** The client of the baseline. */
export const BENCH_CLIENT = { client_id: 'bench', client_secret: 'bench-secret-of-the-baseline' }

export const BENCH_REDIRECT_URI = 'http://127.0.0.1:4711/callback'

/** The grant type of RFC 8693. */
export const EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'

const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token'

const VERIFIER = 'v'.repeat(43)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

/** One side of the comparison. */
export interface OauthSide {
  name: string
  clientId: string
  secret: string
  paths: { authorize: string; token: string; introspect: string; exchange: string }
  /** The cookie of a user who is signed in. */
  cookie: string
}

/** The cookies of one browser by name: beside that of the user, those that the side sets. */
export type Browser = Map<string, string>

/** Opens a browser where the user is signed in. */
export function openBrowser({ cookie }: OauthSide): Browser {
  const [name = '', value = ''] = cookie.split('=', 2)
  return new Map(cookie === '' ? [] : [[name, value]])
}

/** Sends one authorization request of a browser and returns its code. */
export async function authorize(side: OauthSide, browser: Browser = openBrowser(side)): Promise<string> {
  const query = new URLSearchParams({
    client_id: side.clientId,
    redirect_uri: BENCH_REDIRECT_URI,
    response_type: 'code',
    scope: 'openid email contract:read',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
  })
  const answer = await fetch(`${side.paths.authorize}?${query}`, {
    redirect: 'manual',
    headers: { cookie: [...browser].map(([name, value]) => `${name}=${value}`).join('; ') },
  })
  await answer.arrayBuffer()
  for (const line of answer.headers.getSetCookie()) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (/expires=Thu, 01 Jan 1970/i.test(line)) browser.delete(name)
    else browser.set(name, value)
  }
  const code = URL.parse(answer.headers.get('location') ?? '')?.searchParams.get('code')
  if (!code) throw new Error(`${side.name}: no code (${answer.status} ${answer.headers.get('location')})`)
  return code
}

async function post(side: OauthSide, url: string, form: Record<string, string>): Promise<Record<string, unknown>> {
  const authorization = `Basic ${Buffer.from(`${side.clientId}:${side.secret}`).toString('base64')}`
  const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
  const answer = await fetch(url, { method: 'POST', headers, body: new URLSearchParams(form) })
  const body = (await answer.json()) as Record<string, unknown>
  if (answer.status !== 200) throw new Error(`${side.name}: ${answer.status} ${JSON.stringify(body)}`)
  return body
}

/** Redeems a code. */
export async function redeem(side: OauthSide, code: string): Promise<{ access: string; refresh: string }> {
  const form = { grant_type: 'authorization_code', code, redirect_uri: BENCH_REDIRECT_URI, code_verifier: VERIFIER }
  const { access_token: access, refresh_token: next } = await post(side, side.paths.token, form)
  return { access: String(access), refresh: String(next) }
}

/** Spends a refresh token. Returns its successor. */
export async function refresh(side: OauthSide, token: string): Promise<string> {
  const form = { grant_type: 'refresh_token', refresh_token: token }
  return String((await post(side, side.paths.token, form)).refresh_token)
}

/** Asks about a refresh token. */
export async function introspect(side: OauthSide, token: string): Promise<void> {
  const { active } = await post(side, side.paths.introspect, { token })
  if (active !== true) throw new Error(`${side.name}: the token is not active`)
}

/** Exchanges an access token for one of another kind. */
export async function exchange(side: OauthSide, token: string): Promise<void> {
  const form = { grant_type: EXCHANGE_GRANT, subject_token: token, subject_token_type: TOKEN_TYPE }
  const { access_token: exchanged } = await post(side, side.paths.exchange, form)
  if (typeof exchanged !== 'string') throw new Error(`${side.name}: no exchanged token`)
}

import { createHmac } from 'node:crypto'
import type { SessionId, UserId } from '../../../src/base/id.ts'
import { createTestApp, type TestAnswer, type TestApp, type TestAppOptions } from './app.ts'
import { TEST_SECRETS } from './test-secrets.ts'

/** The service of these tests, and two registered targets. */
export const BASE_URL = 'https://id.example.test'
export const TARGET = 'https://b.example.test'
export const OTHER_TARGET = 'https://c.example.test:8443'

/** The secrets that sign handshakes and sessions. */
export const [HANDSHAKE_SECRET] = TEST_SECRETS.ssoHandshake as [string]
export const [SESSION_SECRET] = TEST_SECRETS.sessionJwt as [string]

const HANDSHAKE = '/api/v3/auth/sso/handshake'
const EXCHANGE = '/api/v3/auth/sso/exchange'

/** A user who is signed in at the authentication app. */
export interface SignedIn {
  userId: UserId
  sessionId: SessionId
  /** The session JWT. */
  jwt: string
}

/** The service with its targets, and what the tests of the handshake do with it. */
export interface SsoApp extends AsyncDisposable {
  app: TestApp
  signIn(): Promise<SignedIn>
  start(jwt: string, body: object): Promise<TestAnswer>
  /** A genuine token for `TARGET`, made by the service. */
  mint(user: SignedIn, next?: string): Promise<string>
  exchange(token: unknown, headers?: Record<string, string>): Promise<TestAnswer>
  /** Whether a session JWT is accepted as a bearer token. */
  isAccepted(jwt: string): Promise<boolean>
  /** The audit entries of a request. */
  entriesOf(
    answer: TestAnswer,
  ): Promise<{ outcome: string; user: string | null; target: string | null; detail: Record<string, unknown> }[]>
  countSessions(): Promise<number>
  countNonces(): Promise<number>
  /** The time of the service in whole seconds. */
  seconds(): number
}

/** Builds the service with the targets of these tests, and without a limit that a suite of attacks would spend. */
export async function createSsoApp(options: TestAppOptions = {}): Promise<SsoApp> {
  const app = await createTestApp({
    ...options,
    env: {
      BASE_URL,
      SSO_TARGETS: `${TARGET},${OTHER_TARGET}`,
      RATE_LIMIT_STRICT_PER_MINUTE: '1000000',
      ...options.env,
    },
  })
  const { pool } = app.database
  const count = async (table: string) => (await pool.query(`select count(*) as n from ${table}`)).rows[0].n as number
  const start: SsoApp['start'] = (jwt, body) => app.callAs(jwt)('POST', HANDSHAKE, body)
  return {
    app,
    start,
    signIn: async () => {
      const { userId, token } = await app.signInMember()
      return { userId, sessionId: readPayload(token).sid as SessionId, jwt: token }
    },
    mint: async (user, next) => {
      const answer = await start(user.jwt, { target_url: `${TARGET}/landing`, ...(next !== undefined && { next }) })
      const token = URL.parse(answer.body.data?.redirect_url)?.searchParams.get('sso_token')
      if (!token) throw new Error(`no handshake token: ${JSON.stringify(answer.body)}`)
      return token
    },
    exchange: (token, headers) => app.anonymous('POST', EXCHANGE, { token }, headers),
    isAccepted: async (jwt) => (await app.callAs(jwt)('GET', '/api/v3/auth/session')).status === 200,
    entriesOf: async ({ headers }) => {
      const text = 'select outcome, "user", target, detail from audit_log where request_id = $1'
      return (await pool.query(text, [headers['x-request-id']])).rows
    },
    countSessions: () => count('session'),
    countNonces: () => count('sso_nonce'),
    seconds: () => Math.floor(app.clock.now() / 1000),
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  }
}

/** The claims of a token, unverified. */
export function readPayload(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}

/** The header of a token, unverified. */
export function readHead(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString())
}

/** Signs raw segments under HS256, so that tests build tokens that no encoder produces. */
export function signRaw(header: string | Buffer, payload: string | Buffer, secret = HANDSHAKE_SECRET): string {
  const signed = [header, payload].map((part) => Buffer.from(part as string).toString('base64url')).join('.')
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

/** Signs objects as the service does. A member that is undefined is left out. */
export function sign(header: object, claims: object, secret = HANDSHAKE_SECRET): string {
  return signRaw(JSON.stringify(header), JSON.stringify(claims), secret)
}

export const HANDSHAKE_HEAD = { alg: 'HS256', typ: 'sso+jwt' }
export const CARRIER_HEAD = { alg: 'HS256', typ: 'sso-inner+jwt' }

let nonces = 0

/** The claims of a carrier, as the service makes them at `seconds`. */
export function carrierClaims(user: SignedIn, seconds: number): Record<string, unknown> {
  const times = { iat: seconds, exp: seconds + 60 }
  return { iss: BASE_URL, aud: 'sso-exchange', sub: user.userId, sid: user.sessionId, ...times }
}

/** The claims of a handshake token with a carrier inside, as the service makes them at `seconds`. */
export function handshakeClaims(user: SignedIn, seconds: number): Record<string, unknown> {
  nonces += 1
  return {
    iss: BASE_URL,
    aud: TARGET,
    jwt: sign(CARRIER_HEAD, carrierClaims(user, seconds)),
    nonce: `nonce-of-a-test-${String(nonces).padStart(16, '0')}`,
    iat: seconds,
    exp: seconds + 60,
  }
}

/** A genuine token of another issuer: without a class, with the session JWT of the user inside. */
export function signForeign(user: SignedIn, seconds: number, change: object = {}): string {
  return sign({ alg: 'HS256' }, { ...handshakeClaims(user, seconds), jwt: user.jwt, ...change })
}

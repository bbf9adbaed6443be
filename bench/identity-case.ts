import { createHmac } from 'node:crypto'
import type { ApiCase, ApiFixture } from './api-case.ts'

/** Users with a session each, written by `identity-fill.ts`. */
export const PEOPLE = 2_000

/** Refresh tokens of these sessions, each good for one request. */
export const REFRESH_TOKENS = 200_000

/** The number of a row as a UUID. `kind` tells users from sessions. */
export function idOf(kind: 'user' | 'session', n: number): string {
  return `00000000-000${kind === 'user' ? 1 : 2}-7000-8000-${n.toString(16).padStart(12, '0')}`
}

/** Refresh token number `n`. The service knows it by its hash alone, so it need not be random. */
function refreshTokenOf(n: number): string {
  return `sbr_${String(n).padStart(43, '0')}`
}

function sign(header: object, claims: object, secret: string): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

/** The target of every handshake: development takes loopback origins. */
const TARGET = 'http://b.localhost:4002'

/** Settings that the service defaults to in development. */
const ISSUER = 'http://localhost:3000'

/** A handshake token as the service mints it, for user number `n`. */
function buildHandshake({ secrets }: ApiFixture, n: number): string {
  const iat = Math.floor(Date.now() / 1000)
  const times = { iat, exp: iat + 60 }
  const who = { sub: idOf('user', n % PEOPLE), sid: idOf('session', n % PEOPLE) }
  const carrier = { iss: ISSUER, aud: 'sso-exchange', ...who, ...times }
  const jwt = sign({ alg: 'HS256', typ: 'sso-inner+jwt' }, carrier, secrets.handshake)
  const claims = { iss: ISSUER, aud: TARGET, jwt, nonce: `bench-${String(n).padStart(26, '0')}`, ...times }
  return sign({ alg: 'HS256', typ: 'sso+jwt' }, claims, secrets.handshake)
}

const post = (path: string, body: object) => ({
  method: 'POST' as const,
  path,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

/** The comparisons of identity by name, in the order they run. */
export const IDENTITY_CASES: Readonly<Record<string, ApiCase>> = {
  bearer: {
    bare: 'the MAC of the token, then the one prepared select',
    goal: 0.6,
    status: 200,
    buildRequest: ({ jwt }) => ({
      method: 'GET',
      path: '/api/v3/auth/session',
      headers: { authorization: `Bearer ${jwt}` },
    }),
  },
  refresh: {
    bare: 'count; begin, update and insert of the token, inserts of event and audit entry, commit',
    goal: 0.5,
    status: 200,
    buildRequest: (_fixture, n) => post('/api/v3/auth/session/refresh', { refresh_token: refreshTokenOf(n) }),
  },
  exchange: {
    bare: 'count, two MACs; begin, select for update, inserts of nonce, session, event and audit entry, commit',
    goal: 0.5,
    status: 200,
    buildRequest: (fixture, n) => post('/api/v3/auth/sso/exchange', { token: buildHandshake(fixture, n) }),
  },
}

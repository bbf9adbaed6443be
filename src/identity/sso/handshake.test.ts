import { describe, expect, test } from 'vitest'
import {
  BASE_URL,
  createSsoApp,
  OTHER_TARGET,
  readHead,
  readPayload,
  TARGET,
} from '../../../test/harness/app/sso-app.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { SessionId } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import type { Caller } from '../../http/shape/caller.ts'
import type { SsoDeps } from './exchange.ts'
import { buildOpenTarget, needsHandshake, startHandshake } from './handshake.ts'
import type { HandshakeRules } from './handshake-token.ts'
import { isSameSite, isTarget, readTarget } from './target.ts'

const sso = await openForFile(createSsoApp({ env: { SSO_TARGETS: `${TARGET},${OTHER_TARGET},${BASE_URL}` } }))
const user = await sso.signIn()

const start = (body: object) => sso.start(user.jwt, body)
const tokenOf = (redirectUrl: string) => new URL(redirectUrl).searchParams.get('sso_token') ?? ''

describe('a handshake with an app on another domain', () => {
  test('answers the target URL with a token that lives 60 s, with no-store', async () => {
    const answer = await start({ target_url: `${TARGET}/landing?from=home` })
    expect(answer).toMatchObject({
      status: 200,
      body: { data: { cross_domain: true, expires_in: 60 }, message: 'Handshake started.' },
    })
    expect(answer.headers['cache-control']).toBe('no-store')
    const url = new URL(answer.body.data.redirect_url)
    expect([url.origin, url.pathname, url.searchParams.get('from')]).toEqual([TARGET, '/landing', 'home'])
    expect([...url.searchParams.keys()]).toEqual(['from', 'sso_token'])
  })

  test('mints the claims of the contract, with a nonce of 192 bits and a carrier inside', async () => {
    const token = tokenOf((await start({ target_url: OTHER_TARGET, next: '/orders?page=2' })).body.data.redirect_url)
    const seconds = sso.seconds()
    expect(readHead(token)).toEqual({ alg: 'HS256', typ: 'sso+jwt' })
    const claims = readPayload(token)
    expect(claims).toEqual({
      iss: BASE_URL,
      aud: OTHER_TARGET,
      jwt: expect.any(String),
      nonce: expect.stringMatching(/^[A-Za-z0-9_-]{32}$/),
      next: '/orders?page=2',
      iat: seconds,
      exp: seconds + 60,
    })
    expect(readHead(String(claims.jwt))).toEqual({ alg: 'HS256', typ: 'sso-inner+jwt' })
    expect(readPayload(String(claims.jwt))).toEqual({
      iss: BASE_URL,
      aud: 'sso-exchange',
      sub: user.userId,
      sid: user.sessionId,
      iat: seconds,
      exp: seconds + 60,
    })
  })

  test('has a nonce of its own each time', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, () => sso.mint(user)))
    expect(new Set(tokens.map((token) => readPayload(token).nonce)).size).toBe(20)
  })

  test('holds the path as the URL parser writes it, and none without one', async () => {
    const nextOf = async (next: string) =>
      readPayload(tokenOf((await start({ target_url: TARGET, next })).body.data.redirect_url)).next
    expect(await nextOf('/a/../b#c')).toBe('/b')
    expect(readPayload(await sso.mint(user))).not.toHaveProperty('next')
  })

  test('replaces a token and an error that the target URL has already', async () => {
    const { redirect_url } = (await start({ target_url: `${TARGET}/?sso_token=old&sso_error=exchange_failed&a=1` }))
      .body.data
    const { searchParams } = new URL(redirect_url)
    expect(searchParams.getAll('sso_token')).toHaveLength(1)
    expect(searchParams.get('sso_token')).not.toBe('old')
    expect([...searchParams.keys()]).toEqual(['sso_token', 'a'])
  })

  test('makes a token that expires with the session', async () => {
    const late = await sso.signIn()
    const endsAt = new Date((sso.seconds() + 20) * 1000)
    await sso.app.database.pool.query('update session set expires_at = $1 where document_id = $2', [
      endsAt,
      late.sessionId,
    ])
    expect(readPayload(await sso.mint(late)).exp).toBe(sso.seconds() + 20)
  })

  test('is audited with its target, and recorded as an event', async () => {
    const answer = await start({ target_url: TARGET })
    expect(
      await sso.app.database.pool.query('select from audit_log where request_id = $1', [
        answer.headers['x-request-id'],
      ]),
    ).toMatchObject({ rowCount: 1 })
    expect(await sso.entriesOf(answer)).toEqual([
      {
        outcome: 'success',
        user: user.userId,
        target: user.sessionId,
        detail: { audience: TARGET, cross_domain: true },
      },
    ])
    const { rows } = await sso.app.database.pool.query("select from event_occurrence where event = 'sso.handshake'")
    expect(rows.length).toBeGreaterThan(0)
  })
})

describe('a handshake with an app on the same site', () => {
  test('answers the target URL without a token', async () => {
    const answer = await start({ target_url: `${BASE_URL}/console?tab=1` })
    expect(answer.body.data).toEqual({
      redirect_url: `${BASE_URL}/console?tab=1`,
      cross_domain: false,
      expires_in: null,
    })
  })

  test('answers the path on the target where one is given', async () => {
    const answer = await start({ target_url: `${BASE_URL}/console`, next: '/orders' })
    expect(answer.body.data.redirect_url).toBe(`${BASE_URL}/orders`)
  })
})

describe('a handshake is refused', () => {
  test.each([
    ['an unknown origin', 'https://evil.test/'],
    ['an origin that begins like a target', `${TARGET}.evil.test/`],
    ['a target as user-info', `${TARGET}@evil.test/`],
    ['user-info at a target', 'https://user:password@b.example.test/'],
    ['a target over http', 'http://b.example.test/'],
    ['another port of a target', `${TARGET}:8443/`],
    ['the name of a target with a final dot', 'https://b.example.test./'],
    ['a subdomain of a target', 'https://x.b.example.test/'],
    ['a backslash', 'https:\\\\b.example.test/'],
    ['a tab inside', 'https://b.exam\tple.test/'],
    ['a space before', ' https://b.example.test/'],
    ['a scheme without slashes', 'https:b.example.test'],
    ['a path', '/landing'],
    ['a script', 'javascript:alert(1)'],
    ['a blob', `blob:${TARGET}/x`],
    ['a loopback origin outside development', 'http://localhost:3000/'],
    ['a text', 'b.example.test'],
  ])('for %s', async (_name, target_url) => {
    const answer = await start({ target_url })
    expect(answer).toMatchObject({
      status: 422,
      body: { code: 'validation_failed', errors: [{ path: 'target_url', code: 'sso_target_not_allowed' }] },
    })
  })

  test.each(['//evil.test', '/\\evil.test', 'https://evil.test', '/..//evil.test', '', 'orders', '/%2f/evil.test'])(
    'with the path %j',
    async (next) => {
      const answer = await start({ target_url: TARGET, next })
      expect(answer).toMatchObject({ status: 422, body: { errors: [{ path: 'next', code: 'next_not_a_path' }] } })
    },
  )

  test('without a token, and with a body that breaks a rule', async () => {
    expect((await sso.app.anonymous('POST', '/api/v3/auth/sso/handshake', { target_url: TARGET })).status).toBe(401)
    for (const body of [{}, { target_url: 7 }, { target_url: TARGET, audience: 'x' }, { target_url: TARGET, next: 7 }])
      expect((await start(body)).status).toBe(422)
    expect((await start({ target_url: `${TARGET}/${'a'.repeat(2048)}` })).status).toBe(422)
  })

  test('for an API key, which has no session', async () => {
    const body = { name: 'key', permissions: ['*:*'] }
    const { key } = (await sso.app.admin('POST', '/api/v3/identity/api-key', body)).body.data
    expect(await sso.start(key, { target_url: TARGET })).toMatchObject({ status: 409, body: { code: 'conflict' } })
  })

  test('as a form', async () => {
    const answer = await sso.app.callAs(user.jwt)('POST', '/api/v3/auth/sso/handshake', `target_url=${TARGET}`, {
      'content-type': 'application/x-www-form-urlencoded',
    })
    expect(answer.status).toBe(415)
  })
})

describe('a sign-in that continues', () => {
  const rules: HandshakeRules = {
    ...{ secrets: ['h'.repeat(32)], issuer: () => BASE_URL, baseUrl: () => BASE_URL, cookieDomain: undefined },
    ...{ origins: [TARGET, BASE_URL], allowLoopback: false, acceptSessionJwt: false },
  }
  const { db } = sso.app.database
  const rows = buildIdentityRows(db)
  const openTarget = buildOpenTarget({ rules, random: systemRandom })
  const open = async (sessionId: SessionId, { targetUrl = `${TARGET}/landing`, isNew = false } = {}) => {
    const url = await openTarget(db, { userId: user.userId, sessionId, isNew, targetUrl, now: MADE_AT })
    return url === undefined ? undefined : readPayload(tokenOf(url))
  }
  const seconds = MADE_AT.getTime() / 1000

  test('needs a handshake for a target on another domain alone', () => {
    const urls = [`${TARGET}/landing`, `${BASE_URL}/console`, 'https://evil.test/']
    expect(urls.map((url) => needsHandshake(url, rules))).toEqual([true, false, false])
  })

  test('gets a token for the session that it opens, or that there is, which ends with it', async () => {
    const [opening, lasting] = [newId<SessionId>(), await rows.session(user.userId)]
    const short = await rows.session(user.userId, { expires_at: madeAfter(20_000) })
    expect(await open(opening, { isNew: true })).toMatchObject({ aud: TARGET, exp: seconds + 60 })
    expect(await open(lasting)).toMatchObject({ aud: TARGET, exp: seconds + 60 })
    expect(await open(short)).toMatchObject({ exp: seconds + 20 })
    await expect(open(opening)).rejects.toMatchObject({ code: 'not_found' })
    for (const targetUrl of [`${BASE_URL}/console`, 'https://evil.test/'])
      expect(await open(lasting, { targetUrl })).toBeUndefined()
  })

  test('gets none for a session of a handshake or of an app, and neither starts one', async () => {
    const child = await rows.session(user.userId, { parent: await rows.session(user.userId) })
    const ofApp = await rows.session(user.userId, { client_id: 'app', scope: 'openid' })
    for (const sessionId of [child, ofApp]) {
      expect(await open(sessionId)).toBeUndefined()
      const caller = { userId: user.userId, sessionId } as Caller
      const asked = { caller, targetUrl: TARGET, next: undefined, now: MADE_AT }
      const started = startHandshake({ rules, random: systemRandom } as SsoDeps, db, asked)
      await expect(started).rejects.toMatchObject({ code: 'conflict', reason: 'session_of_handshake' })
    }
  })
})

describe('targets', () => {
  test('have no user name and no password', () => {
    const read = (userinfo: string) => readTarget(TARGET.replace('://', `://${userinfo}`), production)
    expect([read('')?.origin, read('ada@'), read(':secret@'), read('ada:secret@')]).toEqual([
      ...[TARGET, null, null, null],
    ])
  })

  const development = { origins: [TARGET], allowLoopback: true }
  const production = { origins: [TARGET], allowLoopback: false }
  const loopbacks = [
    'http://localhost:3000',
    'http://a.localhost:4001',
    'https://127.0.0.1',
    'http://[::1]:8080',
    'http://127.8.9.1',
  ]

  test.each(loopbacks)('%s is one in development only', (origin) => {
    expect(isTarget(origin, development)).toBe(true)
    expect(isTarget(origin, production)).toBe(false)
    expect(readTarget(`${origin}/landing`, development)?.origin).toBe(origin)
  })

  test.each([
    'http://localhost.evil.test',
    'http://evillocalhost',
    'http://127.0.0.1.evil.test',
    'http://10.0.0.1',
    'http://localhost:3000/',
    'ftp://localhost',
    'localhost',
    'null',
    '',
  ])('%j is none in development', (origin) => {
    expect(isTarget(origin, development)).toBe(false)
  })

  test('on the host and scheme of the service are on its site, on any port', () => {
    const isSame = (target: string, base: string, cookieDomain?: string) =>
      isSameSite(new URL(target), { baseUrl: () => base, cookieDomain })
    expect(isSame('https://id.example.test:8443/x', BASE_URL)).toBe(true)
    expect(isSame('http://id.example.test/x', BASE_URL)).toBe(false)
    expect(isSame('https://app.id.example.test/x', BASE_URL)).toBe(false)
    expect(isSame('http://a.localhost:3000', 'http://localhost:3000')).toBe(false)
  })

  test('in the domain of the session cookie are on its site', () => {
    const isSame = (target: string) =>
      isSameSite(new URL(target), { baseUrl: () => BASE_URL, cookieDomain: 'example.test' })
    expect(isSame('https://app.example.test/x')).toBe(true)
    expect(isSame('https://example.test/x')).toBe(true)
    expect(isSame('https://evilexample.test/x')).toBe(false)
    expect(isSame('https://example.test.evil.test/x')).toBe(false)
    expect(isSame('http://app.example.test/x')).toBe(false)
  })
})

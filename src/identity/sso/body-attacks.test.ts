import { beforeEach, describe, expect, test } from 'vitest'
import {
  CARRIER_HEAD,
  carrierClaims,
  createSsoApp,
  HANDSHAKE_HEAD,
  handshakeClaims,
  type SsoApp,
  sign,
  signForeign,
} from '../../../test/harness/app/sso-app.ts'
import { countTraffic } from '../../../test/harness/plan/round-trips.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const EXCHANGE = '/api/v3/auth/sso/exchange'

const sso = await openForFile(createSsoApp())
const user = await sso.signIn()
// Equal refusals of a minute are one audit entry: each test has a minute of its own.
beforeEach(() => sso.app.clock.advance(60_000))

const post = (body: unknown, headers: Record<string, string> = {}) => sso.app.anonymous('POST', EXCHANGE, body, headers)

describe('a body', () => {
  test.each<[string, () => Promise<unknown>, number]>([
    ['nothing', async () => undefined, 422],
    ['an empty object', async () => ({}), 422],
    ['null', async () => 'null', 422],
    ['a list', async () => [{ token: await sso.mint(user) }], 422],
    ['a text', async () => JSON.stringify(await sso.mint(user)), 422],
    ['a number as token', async () => ({ token: 7 }), 422],
    ['null as token', async () => ({ token: null }), 422],
    ['a list as token', async () => ({ token: [await sso.mint(user)] }), 422],
    ['an object as token', async () => ({ token: { token: await sso.mint(user) } }), 422],
    ['a further member', async () => ({ token: await sso.mint(user), audience: 'x' }), 422],
    ['the token under another name', async () => ({ sso_token: await sso.mint(user) }), 422],
    ['a __proto__', async () => `{"__proto__":{"token":"x"}}`, 400],
    ['broken JSON', async () => '{"token":', 400],
    ['a token with a NUL', async () => '{"token":"\\u0000"}', 400],
    ['half a surrogate pair as token', async () => '{"token":"\\ud800"}', 400],
    ['65 KiB', async () => ({ token: 'x'.repeat(66_560) }), 413],
    ['1 MiB', async () => ({ token: 'x'.repeat(1_048_576) }), 413],
  ])('of %s opens no session', async (_name, build, status) => {
    const body = await build()
    const [sessions, nonces] = [await sso.countSessions(), await sso.countNonces()]
    expect((await post(body)).status).toBe(status)
    expect([await sso.countSessions(), await sso.countNonces()]).toEqual([sessions, nonces])
  })

  test.each(['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain', 'application/xml'])(
    'as %s is a 415',
    async (type) => {
      const token = await sso.mint(user)
      const answer = await post(`token=${token}`, { 'content-type': type })
      expect(answer).toMatchObject({ status: 415, body: { code: 'unsupported_media_type' } })
      expect((await sso.exchange(token)).status).toBe(200)
    },
  )

  test('of a huge token within the limit gets the same 401', async () => {
    expect(await sso.exchange('x'.repeat(60_000))).toMatchObject({ status: 401, body: { code: 'sso_exchange_failed' } })
    expect(await sso.exchange('.'.repeat(60_000))).toMatchObject({ status: 401, body: { code: 'sso_exchange_failed' } })
  })

  test('with an Idempotency-Key is not answered a second time: the answer is a credential', async () => {
    const token = await sso.mint(user)
    const send = () => post({ token }, { 'idempotency-key': 'once' })
    expect([(await send()).status, (await send()).status]).toEqual([200, 401])
  })

  test.each(['GET', 'PUT', 'PATCH', 'DELETE'] as const)('by %s is a 405', async (method) => {
    expect((await sso.app.anonymous(method, EXCHANGE)).status).toBe(405)
  })

  test('in the query is not read', async () => {
    const token = await sso.mint(user)
    expect((await sso.app.anonymous('POST', `${EXCHANGE}?token=${token}`)).status).toBe(422)
  })
})

describe('every refusal', () => {
  /** One token for each stage at which an exchange can fail. */
  const STAGES: [string, () => Promise<string> | string][] = [
    ['a text that is no token', () => 'no-token-at-all'],
    ['an oversized text', () => 'x'.repeat(9000)],
    ['a bad signature', () => sign(HANDSHAKE_HEAD, handshakeClaims(user, sso.seconds()), 'x'.repeat(32))],
    ['a bad header', () => sign({ alg: 'HS256', typ: 'at+jwt' }, handshakeClaims(user, sso.seconds()))],
    ['a bad carrier', () => sign(HANDSHAKE_HEAD, { ...handshakeClaims(user, sso.seconds()), jwt: 'x' })],
    [
      'an unknown session',
      () => {
        const sid = '00000000-0000-7000-8000-000000000000'
        const jwt = sign(CARRIER_HEAD, { ...carrierClaims(user, sso.seconds()), sid })
        return sign(HANDSHAKE_HEAD, { ...handshakeClaims(user, sso.seconds()), jwt })
      },
    ],
    [
      'a revoked session',
      async () => {
        const gone = await sso.signIn()
        const token = await sso.mint(gone)
        await sso.app.callAs(gone.jwt)('POST', '/api/v3/auth/session/revoke', {})
        return token
      },
    ],
    [
      'a used nonce',
      async () => {
        const token = signForeign(user, sso.seconds())
        await sso.exchange(token)
        return token
      },
    ],
  ]

  test.each(STAGES)('sends the same statements to the database: %s', async (_name, build) => {
    await sso.exchange('warm')
    // The first refusal of a minute has an audit entry to write.
    sso.app.clock.advance(60_000)
    const token = await build()
    const count = countTraffic(sso.app.database.pool)
    const answer = await sso.exchange(token)
    const traffic = count.stop()
    expect(answer.status).toBe(401)
    expect(traffic).toEqual({ statements: 5, roundTrips: 2 })
    expect(count.texts.map((text) => text.trim().split(/\s+/).slice(0, 2).join(' '))).toEqual([
      'insert into',
      'begin',
      'with found',
      'with recorded_entry',
      'commit',
    ])
  })

  test.each(STAGES)('has the same length and the same headers: %s', async (_name, build) => {
    const shapeOf = ({ headers, body }: Awaited<ReturnType<SsoApp['exchange']>>) => ({
      names: Object.keys(headers),
      length: headers['content-length'],
      members: { ...body, request_id: undefined },
      authenticate: headers['www-authenticate'],
    })
    expect(shapeOf(await sso.exchange(await build()))).toEqual(shapeOf(await sso.exchange('y')))
  })

  test('keeps its reason out of the answer, and the token out of the answer and the audit log', async () => {
    const reasons = new Set<unknown>()
    for (const [, build] of STAGES) {
      const token = await build()
      const answer = await sso.exchange(token)
      const entries = await sso.entriesOf(answer)
      reasons.add(entries[0]?.detail.reason)
      expect(answer.body.detail).toBe(
        'The handshake token is not valid. Go back to the app that you came from and try again.',
      )
      expect(JSON.stringify([answer.body, entries])).not.toContain(token)
    }
    expect(reasons.size).toBe(STAGES.length)
  })
})

import { beforeEach, describe, expect, test } from 'vitest'
import type { TestAnswer } from '../../../test/harness/app/app.ts'
import {
  CARRIER_HEAD,
  carrierClaims,
  createSsoApp,
  HANDSHAKE_HEAD,
  handshakeClaims,
  OTHER_TARGET,
  readPayload,
  type SignedIn,
  sign,
  signForeign,
  TARGET,
} from '../../../test/harness/app/sso-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const REVOKE = '/api/v3/auth/session/revoke'
const USER = '/api/v3/identity/user'

/** Two processes of the service on one database. */
const sso = await openForFile(createSsoApp())
const other = await openForFile(createSsoApp({ database: sso.app.database, clock: sso.app.clock }))
// Equal refusals of a minute are one audit entry: each test has a minute of its own.
beforeEach(() => sso.app.clock.advance(60_000))

const statusesOf = (answers: TestAnswer[]) => answers.map(({ status }) => status).sort()

async function expectRefused(answer: TestAnswer, reason: string): Promise<void> {
  expect(answer).toMatchObject({ status: 401, body: { code: 'sso_exchange_failed' } })
  expect(await sso.entriesOf(answer)).toMatchObject([{ outcome: 'failure', detail: { reason } }])
}

async function countChildren(user: SignedIn): Promise<number> {
  const { rows } = await sso.app.database.pool.query(
    'select count(*) as n from session where parent = $1 and revoked_at is null',
    [user.sessionId],
  )
  return rows[0].n
}

describe('a replay', () => {
  test('of an exchanged token is refused', async () => {
    const token = await sso.mint(await sso.signIn())
    expect((await sso.exchange(token)).status).toBe(200)
    await expectRefused(await sso.exchange(token), 'replayed')
  })

  test('in another process is refused', async () => {
    const token = await sso.mint(await sso.signIn())
    expect((await sso.exchange(token)).status).toBe(200)
    await expectRefused(await other.exchange(token), 'replayed')
  })

  test('ten times at once opens exactly one session', async () => {
    const user = await sso.signIn()
    const token = await sso.mint(user)
    const answers = await Promise.all(Array.from({ length: 10 }, () => sso.exchange(token)))
    expect(statusesOf(answers)).toEqual([200, ...Array(9).fill(401)])
    expect(await countChildren(user)).toBe(1)
  })

  test('at once in two processes opens exactly one session, each time', async () => {
    for (let round = 0; round < 8; round += 1) {
      const user = await sso.signIn()
      const token = await sso.mint(user)
      const answers = await Promise.all([sso, other, sso, other].map((item) => item.exchange(token)))
      expect(statusesOf(answers)).toEqual([200, 401, 401, 401])
      expect(await countChildren(user)).toBe(1)
    }
  })

  test('of the nonce in a token with another payload is refused', async () => {
    const user = await sso.signIn()
    const claims = handshakeClaims(user, sso.seconds())
    expect((await sso.exchange(sign(HANDSHAKE_HEAD, claims))).status).toBe(200)
    await expectRefused(await sso.exchange(sign(HANDSHAKE_HEAD, { ...claims, next: '/else' })), 'replayed')
    // Counted with the one before.
    const again = await sso.exchange(sign(HANDSHAKE_HEAD, { ...claims, aud: OTHER_TARGET }))
    expect(again).toMatchObject({ status: 401, body: { code: 'sso_exchange_failed' } })
  })

  test('of the nonce in a token of another user is refused, also at once', async () => {
    const users = await Promise.all([sso.signIn(), sso.signIn(), sso.signIn()])
    const nonce = 'one nonce of a careless issuer'
    const tokens = users.map((user) => sign(HANDSHAKE_HEAD, { ...handshakeClaims(user, sso.seconds()), nonce }))
    expect(statusesOf(await Promise.all(tokens.map((token) => sso.exchange(token))))).toEqual([200, 401, 401])
  })

  test('of the nonce in a token without a class is refused', async () => {
    const user = await sso.signIn()
    const token = await sso.mint(user)
    await sso.exchange(token)
    const { nonce } = readPayload(token)
    await expectRefused(await sso.exchange(signForeign(user, sso.seconds(), { nonce })), 'replayed')
  })

  test('of an expired token is refused after maintenance forgot its nonce', async () => {
    await using own = await createSsoApp()
    const token = await own.mint(await own.signIn())
    await own.exchange(token)
    own.app.clock.advance(65_000)
    expect((await own.exchange(token)).status).toBe(401)
    await own.app.app.maintenance.sweep()
    expect(await own.countNonces()).toBe(1)
    own.app.clock.advance(3_600_000)
    expect(await own.app.app.maintenance.sweep()).toMatchObject({ ssoNonces: 1 })
    expect(await own.countNonces()).toBe(0)
    const answer = await own.exchange(token)
    expect(await own.entriesOf(answer)).toMatchObject([{ detail: { reason: 'expired' } }])
  })

  test('does not use up the nonce of a token that is refused for another reason', async () => {
    const token = await sso.mint(await sso.signIn())
    await expectRefused(await sso.exchange(token, { origin: 'https://evil.test' }), 'origin')
    expect((await sso.exchange(token)).status).toBe(200)
  })
})

describe('a token outlives nothing', () => {
  test('its session was signed out', async () => {
    const user = await sso.signIn()
    const token = await sso.mint(user)
    await sso.app.callAs(user.jwt)('POST', REVOKE, {})
    await expectRefused(await sso.exchange(token), 'session_revoked')
  })

  test('its session was signed out in another process', async () => {
    const user = await sso.signIn()
    const token = await sso.mint(user)
    await other.app.callAs(user.jwt)('POST', REVOKE, {})
    await expectRefused(await sso.exchange(token), 'session_revoked')
  })

  test('every session of its user was revoked', async () => {
    const user = await sso.signIn()
    const token = await sso.mint(user)
    await sso.app.admin('POST', `${USER}/${user.userId}/revoke-sessions`, {})
    await expectRefused(await sso.exchange(token), 'session_revoked')
  })

  test('its session expired', async () => {
    const user = await sso.signIn()
    const { pool } = sso.app.database
    const endsAt = new Date(sso.app.clock.now() + 1)
    const token = await sso.mint(user)
    await pool.query('update session set expires_at = $1 where document_id = $2', [endsAt, user.sessionId])
    sso.app.clock.advance(1)
    await expectRefused(await sso.exchange(token), 'session_expired')
  })

  test('its session was deleted', async () => {
    const user = await sso.signIn()
    const token = await sso.mint(user)
    await sso.app.database.pool.query('delete from session where document_id = $1', [user.sessionId])
    await expectRefused(await sso.exchange(token), 'session_unknown')
  })

  test('its user was disabled', async () => {
    const user = await sso.signIn()
    const token = await sso.mint(user)
    await sso.app.admin('POST', `${USER}/${user.userId}/disable`, {})
    await expectRefused(await sso.exchange(token), 'user_inactive')
  })

  test('its user was disabled and enabled again', async () => {
    const user = await sso.signIn()
    const token = await sso.mint(user)
    await sso.app.admin('POST', `${USER}/${user.userId}/disable`, {})
    await sso.app.admin('POST', `${USER}/${user.userId}/enable`, {})
    await expectRefused(await sso.exchange(token), 'session_revoked')
  })

  test('its user was deleted', async () => {
    const user = await sso.signIn()
    const token = await sso.mint(user)
    await sso.app.admin('DELETE', `${USER}/${user.userId}`)
    await expectRefused(await sso.exchange(token), 'user_inactive')
  })

  test('the password of its user was changed', async () => {
    const user = await sso.signIn()
    const token = await sso.mint(user)
    await sso.app.admin('PATCH', `${USER}/${user.userId}`, { password: 'another horse battery' })
    await expectRefused(await sso.exchange(token), 'session_revoked')
  })

  test('the session JWT inside a token without a class has expired', async () => {
    await using own = await createSsoApp()
    const user = await own.signIn()
    own.app.clock.advance(3_600_000 + 5_000)
    const answer = await own.exchange(signForeign(user, own.seconds()))
    expect(await own.entriesOf(answer)).toMatchObject([{ outcome: 'failure', detail: { reason: 'inner_expired' } }])
  })
})

describe('a session that a handshake opened', () => {
  const arrive = async (): Promise<SignedIn> => {
    const { jwt } = (await sso.exchange(await sso.mint(await sso.signIn()))).body
    const { sub, sid } = readPayload(jwt)
    return { userId: sub, sessionId: sid, jwt } as SignedIn
  }

  test('starts no handshake', async () => {
    const answer = await sso.start((await arrive()).jwt, { target_url: OTHER_TARGET })
    expect(answer).toMatchObject({ status: 409, body: { code: 'conflict' } })
  })

  test('is refused inside a token of another issuer', async () => {
    const token = signForeign(await arrive(), sso.seconds())
    await expectRefused(await sso.exchange(token), 'session_of_handshake')
  })

  test('is refused inside a carrier', async () => {
    const token = sign(HANDSHAKE_HEAD, handshakeClaims(await arrive(), sso.seconds()))
    await expectRefused(await sso.exchange(token), 'session_of_handshake')
  })
})

describe('the app that exchanges', () => {
  test.each([
    ['another target', OTHER_TARGET],
    ['a stranger', 'https://evil.test'],
    ['the same host over http', TARGET.replace('https', 'http')],
    ['a sandboxed page', 'null'],
    ['an origin with a path', `${TARGET}/`],
  ])('is refused as %s', async (_name, origin) => {
    await expectRefused(await sso.exchange(await sso.mint(await sso.signIn()), { origin }), 'origin')
  })
})

describe('at the same time', () => {
  test('a sign-out and an exchange leave no session of the family', async () => {
    for (let round = 0; round < 12; round += 1) {
      const user = await sso.signIn()
      const tokens = [await sso.mint(user), await sso.mint(user)]
      const body = round % 2 === 0 ? {} : { all: true }
      await Promise.all([
        sso.exchange(tokens[0]),
        other.app.callAs(user.jwt)('POST', REVOKE, body),
        other.exchange(tokens[1]),
      ])
      expect(await countChildren(user), `round ${round}`).toBe(0)
    }
  })

  test('disabling the user and an exchange leave no session of the family', async () => {
    for (let round = 0; round < 8; round += 1) {
      const user = await sso.signIn()
      const token = await sso.mint(user)
      await Promise.all([sso.exchange(token), other.app.admin('POST', `${USER}/${user.userId}/disable`, {})])
      expect(await countChildren(user), `round ${round}`).toBe(0)
    }
  })

  test('two tokens of one session open two sessions', async () => {
    const user = await sso.signIn()
    const tokens = [await sso.mint(user), await sso.mint(user)]
    expect(statusesOf(await Promise.all([sso.exchange(tokens[0]), other.exchange(tokens[1])]))).toEqual([200, 200])
    expect(await countChildren(user)).toBe(2)
  })
})

test('a carrier that expires before its token is refused when it has', async () => {
  const user = await sso.signIn()
  const seconds = sso.seconds()
  const jwt = sign(CARRIER_HEAD, { ...carrierClaims(user, seconds), exp: seconds + 10 })
  const token = sign(HANDSHAKE_HEAD, { ...handshakeClaims(user, seconds), jwt })
  sso.app.clock.advance(15_000)
  await expectRefused(await sso.exchange(token), 'inner_expired')
})

import { describe, expect, test } from 'vitest'
import {
  BASE_URL,
  createSsoApp,
  HANDSHAKE_SECRET,
  OTHER_TARGET,
  readPayload,
  type SignedIn,
  signForeign,
  TARGET,
} from '../../../test/harness/app/sso-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const REVOKE = '/api/v3/auth/session/revoke'

const sso = await openForFile(createSsoApp())

/** A user with a session of their own and one that was opened by a handshake. */
async function arrive(): Promise<{ user: SignedIn; jwt: string }> {
  const user = await sso.signIn()
  const answer = await sso.exchange(await sso.mint(user))
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return { user, jwt: answer.body.jwt }
}

const describeSession = async (jwt: string) => (await sso.app.callAs(jwt)('GET', '/api/v3/auth/session')).body.data

describe('an exchange', () => {
  test('answers the bare JWT of a new session of the same user, with no-store', async () => {
    const user = await sso.signIn()
    const answer = await sso.exchange(await sso.mint(user))
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ jwt: expect.any(String) })
    expect(answer.headers['cache-control']).toBe('no-store')
    const claims = readPayload(answer.body.jwt)
    expect(claims).toMatchObject({ iss: BASE_URL, aud: 'signalbox', sub: user.userId })
    expect(claims.sid).not.toBe(user.sessionId)
    expect(await sso.isAccepted(answer.body.jwt)).toBe(true)
  })

  test('opens a session that records its parent, address and user agent, and has no refresh token', async () => {
    const user = await sso.signIn()
    const answer = await sso.exchange(await sso.mint(user), { 'user-agent': 'Browser/1' })
    const { session } = await describeSession(answer.body.jwt)
    expect(session).toMatchObject({ parent: user.sessionId, user_agent: 'Browser/1', address: '127.0.0.1' })
    const tokens = await sso.app.database.pool.query('select from session_refresh where session = $1', [
      session.document_id,
    ])
    expect(tokens.rowCount).toBe(0)
  })

  test('opens a session that expires with its parent', async () => {
    const user = await sso.signIn()
    const endsAt = new Date(sso.app.clock.now() + 90_000)
    await sso.app.database.pool.query('update session set expires_at = $1 where document_id = $2', [
      endsAt,
      user.sessionId,
    ])
    const { jwt } = (await sso.exchange(await sso.mint(user))).body
    expect((await describeSession(jwt)).session.expires_at).toBe(endsAt.toISOString())
    expect(readPayload(jwt).exp).toBe(Math.floor(endsAt.getTime() / 1000))
  })

  test('continues in the account of the parent, and in the first one when the user left it', async () => {
    const create = async (name: string) =>
      (await sso.app.admin('POST', '/api/v3/identity/account', { name })).body.data.document_id
    const [first, second] = [await create('First'), await create('Second')]
    const member = await sso.app.signInMember([first, second])
    const sessionId = String(readPayload(member.token).sid)
    const user = { userId: member.userId, jwt: member.token, sessionId } as SignedIn
    const move = (account: string) =>
      sso.app.database.pool.query('update session set account = $1 where document_id = $2', [account, sessionId])
    await move(second)
    expect(readPayload((await sso.exchange(await sso.mint(user))).body.jwt).account).toBe(second)
    const token = await sso.mint(user)
    await sso.app.admin('DELETE', `/api/v3/identity/account/${second}/member`, { user: member.userId })
    expect(readPayload((await sso.exchange(token)).body.jwt).account).toBe(first)
  })

  test('takes the origin of the target in the Origin header', async () => {
    expect((await sso.exchange(await sso.mint(await sso.signIn()), { origin: TARGET })).status).toBe(200)
  })

  test('is audited with its parent and its target, and recorded as an event', async () => {
    const user = await sso.signIn()
    const answer = await sso.exchange(await sso.mint(user))
    const sessionId = readPayload(answer.body.jwt).sid
    const detail = { parent: user.sessionId, audience: TARGET }
    expect(await sso.entriesOf(answer)).toEqual([{ outcome: 'success', user: user.userId, target: sessionId, detail }])
    const events = await sso.app.database.pool.query('select event from event_occurrence where resource_id = $1', [
      sessionId,
    ])
    expect(events.rows).toEqual([{ event: 'sso.exchange' }])
  })

  test('keeps a hash of the nonce until the token has expired, and not the token', async () => {
    const token = await sso.mint(await sso.signIn())
    await sso.exchange(token)
    const { rows } = await sso.app.database.pool.query('select * from sso_nonce order by expires_at desc')
    expect(rows.map((row) => row.nonce_hash.length)).toContain(32)
    expect(JSON.stringify(rows)).not.toContain(String(readPayload(token).nonce))
    expect(rows.map((row) => row.expires_at.getTime() / 1000)).toContain(readPayload(token).exp)
  })

  test('of a token of another issuer, without a class and with a session JWT inside, opens a session', async () => {
    const user = await sso.signIn()
    const answer = await sso.exchange(signForeign(user, sso.seconds(), { next: '/orders?page=2' }))
    expect(answer.status).toBe(200)
    expect((await describeSession(answer.body.jwt)).session.parent).toBe(user.sessionId)
  })

  test('accepts any registered target as the audience', async () => {
    const token = signForeign(await sso.signIn(), sso.seconds(), { aud: OTHER_TARGET })
    expect((await sso.exchange(token)).status).toBe(200)
  })

  test('accepts a token under each of several secrets, and the newest one signs', async () => {
    const [newer, older] = ['n'.repeat(32), HANDSHAKE_SECRET]
    await using rotated = await createSsoApp({ database: sso.app.database, ssoHandshake: [newer, older] })
    const user = await sso.signIn()
    expect((await rotated.exchange(await sso.mint(user))).status).toBe(200)
    const token = await rotated.mint(user)
    expect((await sso.exchange(token)).status).toBe(401)
    expect((await rotated.exchange(token)).status).toBe(200)
  })
})

describe('the family of a session', () => {
  test('ends when the parent signs out', async () => {
    const { user, jwt } = await arrive()
    const answer = await sso.app.callAs(user.jwt)('POST', REVOKE, {})
    expect(answer.body.data).toEqual({ revoked: 2 })
    expect(await sso.isAccepted(jwt)).toBe(false)
  })

  test('ends as a whole when one of its apps signs out with family', async () => {
    const { user, jwt } = await arrive()
    const sibling = (await sso.exchange(await sso.mint(user))).body.jwt
    const answer = await sso.app.callAs(jwt)('POST', REVOKE, { family: true })
    expect(answer.body.data).toEqual({ revoked: 3 })
    for (const token of [user.jwt, jwt, sibling]) expect(await sso.isAccepted(token)).toBe(false)
  })

  test('stays when an app signs out alone', async () => {
    const { user, jwt } = await arrive()
    await sso.app.callAs(jwt)('POST', REVOKE, {})
    expect(await sso.isAccepted(jwt)).toBe(false)
    expect(await sso.isAccepted(user.jwt)).toBe(true)
  })

  test('does not reach another sign-in of the same user', async () => {
    const email = 'twice@example.com'
    const password = 'correct horse battery'
    await sso.app.admin('POST', '/api/v3/identity/user', { email, password })
    const login = async () =>
      (await sso.app.anonymous('POST', '/api/v3/auth/login/local', { email, password })).body.data.jwt as string
    const [first, other] = [await login(), await login()]
    const { redirect_url } = (await sso.start(first, { target_url: TARGET })).body.data
    const { jwt } = (await sso.exchange(new URL(redirect_url).searchParams.get('sso_token'))).body
    await sso.app.callAs(jwt)('POST', REVOKE, { family: true })
    expect([await sso.isAccepted(first), await sso.isAccepted(jwt), await sso.isAccepted(other)]).toEqual([
      false,
      false,
      true,
    ])
  })

  test('ends when the password is changed', async () => {
    const { user, jwt } = await arrive()
    await sso.app.admin('PATCH', `/api/v3/identity/user/${user.userId}`, { password: 'correct horse battery' })
    expect(await sso.isAccepted(jwt)).toBe(false)
  })

  test('ends when the user is disabled', async () => {
    const { user, jwt } = await arrive()
    await sso.app.admin('POST', `/api/v3/identity/user/${user.userId}/disable`, {})
    expect(await sso.isAccepted(jwt)).toBe(false)
  })
})

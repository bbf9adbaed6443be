import { describe, expect, test } from 'vitest'
import { createTestApp, type TestCall } from '../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../test/harness/app/known-password.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { refreshSession } from './refresh.ts'
import { REPEAT_MS } from './refresh-decision.ts'

const REFRESH = '/api/v3/auth/session/refresh'
const PASSWORD = 'correct horse battery'

const env = { RATE_LIMIT_STRICT_PER_MINUTE: '100000' }
const app = await openForFile(createTestApp({ env }))
/** Another process on the same database. */
const other = await openForFile(createTestApp({ env, database: app.database, clock: app.clock }))

let count = 0
/** Signs a new user in. */
async function signIn() {
  const login = { email: `refresh-${count++}@example.com`, password: PASSWORD }
  await createUserWithPassword(app, { email: login.email }, PASSWORD)
  const { data } = (await app.anonymous('POST', '/api/v3/auth/login/local', login)).body
  return { jwt: data.jwt as string, token: data.refresh_token as string, userId: data.user.document_id as string }
}
const refresh = (token: string, { by = app.anonymous, headers = {} }: { by?: TestCall; headers?: object } = {}) =>
  by('POST', REFRESH, { refresh_token: token }, headers as Record<string, string>)
const statusOf = async (jwt: string) => (await app.callAs(jwt)('GET', '/api/v3/auth/session')).status
const claimsOf = (jwt: string) => JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString())
const countTokens = async (jwt: string) => {
  const { sid } = claimsOf(jwt)
  return (await app.database.pool.query('select from session_refresh where session = $1', [sid])).rowCount
}
const refused = { status: 401, body: { code: 'refresh_failed' } }

describe('the client that spent a refresh token', () => {
  test('gets the same successor for 9.999 s, and no second one exists', async () => {
    const user = await signIn()
    const first = (await refresh(user.token)).body.data
    app.clock.advance(REPEAT_MS - 1)
    const again = await refresh(user.token)
    expect(again.status).toBe(200)
    expect(again.body.data.refresh_token).toBe(first.refresh_token)
    expect(claimsOf(again.body.data.jwt).sid).toBe(claimsOf(first.jwt).sid)
    expect(await statusOf(again.body.data.jwt)).toBe(200)
    expect(await countTokens(first.jwt)).toBe(2)
    expect((await refresh(first.refresh_token)).status).toBe(200)
  })

  test('is signed out everywhere by a repeat after 10 s', async () => {
    const user = await signIn()
    const first = (await refresh(user.token)).body.data
    app.clock.advance(REPEAT_MS)
    expect(await refresh(user.token)).toMatchObject(refused)
    expect([await statusOf(user.jwt), await statusOf(first.jwt)]).toEqual([401, 401])
    expect(await refresh(first.refresh_token)).toMatchObject(refused)
  })

  test('gets it in another process too, and from many parallel requests in both', async () => {
    const user = await signIn()
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        refresh(user.token, { by: index % 2 ? app.anonymous : other.anonymous }),
      ),
    )
    expect(replies.map(({ status }) => status)).toEqual(Array(12).fill(200))
    expect(new Set(replies.map(({ body }) => body.data.refresh_token)).size).toBe(1)
    expect(await countTokens(user.jwt)).toBe(2)
    const next = replies[0]!.body.data.refresh_token
    expect((await refresh(next, { by: other.anonymous })).status).toBe(200)
  })

  test('gets no answer for a session that ended meanwhile', async () => {
    const user = await signIn()
    await refresh(user.token)
    await app.callAs(user.jwt)('POST', '/api/v3/auth/session/revoke')
    expect(await refresh(user.token)).toMatchObject(refused)
  })
})

describe('another client with a spent refresh token', () => {
  test('revokes the session at once, by its user agent', async () => {
    const user = await signIn()
    const first = (await refresh(user.token)).body.data
    expect(await refresh(user.token, { headers: { 'user-agent': 'another' } })).toMatchObject(refused)
    expect(await statusOf(first.jwt)).toBe(401)
    expect(await refresh(first.refresh_token)).toMatchObject(refused)
  })

  test('of two clients with one token at once, one succeeds and the session ends', async () => {
    const user = await signIn()
    const replies = await Promise.all(
      ['A', 'B'].map((agent, index) =>
        refresh(user.token, { by: index ? app.anonymous : other.anonymous, headers: { 'user-agent': agent } }),
      ),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 401])
    expect(await statusOf(replies.find(({ status }) => status === 200)!.body.data.jwt)).toBe(401)
  })

  test('leaves other sessions of the user valid', async () => {
    const user = await signIn()
    const { body } = await app.admin('GET', `/api/v3/identity/user/${user.userId}`)
    const login = { email: body.data.email, password: PASSWORD }
    const second = (await app.anonymous('POST', '/api/v3/auth/login/local', login)).body.data
    await refresh(user.token)
    await refresh(user.token, { headers: { 'user-agent': 'another' } })
    expect([await statusOf(user.jwt), await statusOf(second.jwt)]).toEqual([401, 200])
  })
})

describe('a refresh', () => {
  test('is a use of its own session, and of no other', async () => {
    const users = [await signIn(), await signIn()]
    const signedInAt = app.clock.now()
    app.clock.advance(60_000)
    await refresh(users[0]!.token)
    const sessions = users.map(({ jwt }) => claimsOf(jwt).sid)
    const text = 'select last_used_at from session where document_id = any($1) order by last_used_at desc'
    const { rows } = await app.database.pool.query(text, [sessions])
    expect(rows.map((row) => row.last_used_at.getTime())).toEqual([app.clock.now(), signedInAt])
  })

  test('keeps how and when the user signed in', async () => {
    const user = await signIn()
    const before = claimsOf(user.jwt)
    expect(before).toMatchObject({ amr: ['pwd'], acr: 'aal1', auth_time: before.iat })
    app.clock.advance(60_000)
    const { amr, acr, auth_time: time, iat } = claimsOf((await refresh(user.token)).body.data.jwt)
    expect({ amr, acr, time }).toEqual({ amr: ['pwd'], acr: 'aal1', time: before.auth_time })
    expect(iat).toBe(before.iat + 60)
  })

  test('is audited: the rotation, the repeat and the reuse with its reason; events tell the rotation only', async () => {
    const user = await signIn()
    await refresh(user.token)
    await refresh(user.token)
    await refresh(user.token, { headers: { 'user-agent': 'another' } })
    const { sid } = claimsOf(user.jwt)
    const log = await app.admin('GET', `/api/v3/audit/log?filters=session|eq|${sid}&sort=created_at`)
    const entries = log.body.data.filter((row: { action: string }) => row.action === 'session.refresh')
    expect(entries).toMatchObject([
      { outcome: 'success', user: user.userId, target: sid },
      { outcome: 'success', user: user.userId, detail: { is_repeat: true } },
      { outcome: 'failure', user: user.userId, detail: { reason: 'reused' } },
    ])
    const { rowCount } = await app.database.pool.query(
      `select from event_occurrence where event = 'session.refresh' and resource_id = $1`,
      [sid],
    )
    expect(rowCount).toBe(1)
  })

  test('of a token that has expired, or of an ended session, is refused for that, and ends nothing', async () => {
    const user = await signIn()
    const { sid } = claimsOf(user.jwt)
    const expire = 'update session_refresh set expires_at = $2 where session = $1'
    await app.database.pool.query(expire, [sid, new Date(app.clock.now())])
    expect(await refresh(user.token)).toMatchObject(refused)
    expect(await statusOf(user.jwt)).toBe(200)
    await app.callAs(user.jwt)('POST', '/api/v3/auth/session/revoke')
    expect(await refresh(user.token)).toMatchObject(refused)
    const log = await app.admin('GET', `/api/v3/audit/log?filters=action|eq|session.refresh&sort=-created_at`)
    const ofUser = log.body.data.filter((row: { user: string }) => row.user === user.userId)
    expect(ofUser.map((row: { detail: object }) => row.detail)).toMatchObject([
      { reason: 'session_ended' },
      { reason: 'expired' },
    ])
  })

  test('leaves no token in the database, neither the spent one nor its successor', async () => {
    const user = await signIn()
    const first = (await refresh(user.token)).body.data
    const { rows } = await app.database.pool.query('select t::text as text from session_refresh t')
    const dump = rows.map((row: { text: string }) => row.text).join('\n')
    for (const token of [user.token, first.refresh_token]) {
      const bytes = Buffer.from(token.slice(4), 'base64url').toString('hex')
      expect(dump).not.toContain(token)
      expect(dump).not.toContain(bytes)
    }
  })

  test('repeats after SECRET_KEY got a new first key, and is refused after the old key left the list', async () => {
    const user = await signIn()
    const now = new Date(app.clock.now())
    const issuer = { ids: app.app.ids, random: systemRandom, keys: { secrets: ['x'.repeat(32)], issuer: () => 'x' } }
    const origin = { address: '127.0.0.1', userAgent: 'test' }
    const by = (...secrets: string[]) =>
      refreshSession({ ...issuer, keyring: buildKeyring(secrets, systemRandom) }, app.database.db, {
        refreshToken: user.token,
        origin,
        now,
      })
    const [old, fresh] = ['old secret of at least 32 bytes long', 'new secret of at least 32 bytes long']
    const first = await by(old)
    const again = await by(fresh, old)
    expect(again).toMatchObject({ kind: 'refreshed', isRepeat: true })
    expect(again.kind === 'refreshed' && again.issued.refreshToken).toBe(
      first.kind === 'refreshed' && first.issued.refreshToken,
    )
    expect(await by(fresh)).toMatchObject({ kind: 'refused', reason: 'reused' })
  })
})

import { describe, expect, test } from 'vitest'
import { buildIdentityApp, type User } from '../../../test/harness/app/identity-app.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, SessionId } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { findPermissionsOf } from '../../oauth/scope/scope.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { openAccountFor } from '../account/account.ts'
import { buildAuthenticate, readBearerToken } from '../caller/authenticate.ts'
import { buildCallerCache } from '../caller/caller-cache.ts'
import { deleteEndedSessions, findSession, leaveAccount } from './session.store.ts'
import { issueSession, REFRESH_LIFETIME_MS, SESSION_LIFETIME_MS, signOut } from './session.ts'
import { verifySessionToken } from './token/session-token.ts'

const SESSION = '/api/v3/auth/session'
const REFRESH = '/api/v3/auth/session/refresh'
const REVOKE = '/api/v3/auth/session/revoke'

const app = await openForFile(buildIdentityApp())

let count = 0
const user = () => app.user(`person-${count++}`)
const refresh = (token: string | null) => app.call('POST', REFRESH, { body: { refresh_token: token } })
const refused = { status: 401, body: { code: 'refresh_failed' } }
const statusOf = async (token: string) => (await app.call('GET', SESSION, { token })).status
const deps = () => ({ ids: app.ids, random: systemRandom, keys: app.keys })
const now = () => new Date(app.clock.now())

/** A session opened from another one, as by a handshake (docs/contract/sso.md#exchange-checks). */
async function openChild(parent: User) {
  const record = (await findSession(app.db, { id: parent.session.sessionId }))!
  const origin = { address: null, userAgent: null }
  const child = await issueSession(deps(), app.db, {
    userId: parent.user.id,
    origin,
    parent: record,
    isRefreshable: false,
    now: now(),
  })
  return child!
}

test('a session that is opened from another one has the sign-in of that', async () => {
  const parent = await user()
  const opened = (await findSession(app.db, { id: parent.session.sessionId }))!
  app.clock.advance(60_000)
  const { sessionId } = await openChild(parent)
  expect(await findSession(app.db, { id: sessionId })).toMatchObject({
    ...{ parentId: opened.id, authTime: opened.authTime, acr: opened.acr, amr: [...opened.amr, 'sso'] },
  })
})

describe('a refresh', () => {
  test('answers a new JWT of the same session and the next refresh token, with no-store', async () => {
    const someone = await user()
    app.clock.advance(1000)
    const reply = await refresh(someone.session.refreshToken)
    expect(reply.status).toBe(200)
    expect(reply.headers['cache-control']).toBe('no-store')
    const { data } = reply.body
    expect(data).toEqual({
      jwt: expect.any(String),
      token_type: 'Bearer',
      expires_in: 3600,
      refresh_token: expect.stringMatching(/^sbr_[A-Za-z0-9_-]{43}$/),
    })
    expect(data.refresh_token).not.toBe(someone.session.refreshToken)
    const verified = verifySessionToken(app.keys, data.jwt, now())
    expect(verified).toMatchObject({ ok: true, claims: { sessionId: someone.session.sessionId } })
    expect(await statusOf(data.jwt)).toBe(200)
  })

  test('is refused after exactly 30 days without use', async () => {
    const [early, late] = [await user(), await user()]
    app.clock.advance(REFRESH_LIFETIME_MS - 1)
    expect((await refresh(early.session.refreshToken)).status).toBe(200)
    app.clock.advance(1)
    expect(await refresh(late.session.refreshToken)).toMatchObject(refused)
  })

  test('does not extend a session past 90 days, and the last JWT expires with it', async () => {
    const someone = await user()
    const endsAtMs = app.clock.now() + SESSION_LIFETIME_MS
    let token = someone.session.refreshToken
    for (let step = 0; step < 3; step += 1) {
      app.clock.advance(SESSION_LIFETIME_MS / 3 - 10_000)
      token = (await refresh(token)).body.data.refresh_token
    }
    const last = (await refresh(token)).body.data
    expect(last.expires_in).toBe(30)
    app.clock.set(endsAtMs - 1)
    expect(await statusOf(last.jwt)).toBe(200)
    app.clock.set(endsAtMs)
    expect(await statusOf(last.jwt)).toBe(401)
    expect(await refresh(last.refresh_token)).toMatchObject(refused)
  })

  test('is refused for a disabled user and for a revoked session', async () => {
    const [disabled, revoked] = [await user(), await user()]
    await app.db.updateTable('user').set({ is_actived: false }).where('document_id', '=', disabled.user.id).execute()
    await app.call('POST', REVOKE, { token: revoked.token })
    expect(await refresh(disabled.session.refreshToken)).toMatchObject(refused)
    expect(await refresh(revoked.session.refreshToken)).toMatchObject(refused)
  })

  test('is refused for an unknown token, and with 422 for an invalid body', async () => {
    expect(await refresh(`sbr_${'A'.repeat(43)}`)).toMatchObject(refused)
    expect(await refresh('x')).toMatchObject(refused)
    for (const body of [undefined, {}, { refresh_token: 7 }, { refresh_token: '' }, { refresh_token: 'x', scope: '*' }])
      expect(await app.call('POST', REFRESH, { body })).toMatchObject({ status: 422 })
  })
})

describe('signing out', () => {
  test.each(['keep_apps', 'keep_api_keys'])('takes %s only together with all', async (name) => {
    const someone = await user()
    const sign = (body: object) => app.call('POST', REVOKE, { token: someone.token, body })
    expect(await sign({ [name]: true })).toMatchObject({ status: 422, body: { errors: [{ path: name }] } })
    expect((await sign({ all: true, [name]: true })).status).toBe(200)
  })

  test('revokes the session of the token and those opened from it at any depth, and no other', async () => {
    const someone = await user()
    const child = await openChild(someone)
    const other = await user()
    const reply = await app.call('POST', REVOKE, { token: someone.token })
    expect(reply).toMatchObject({ status: 200, body: { data: { revoked: 2 } } })
    expect([await statusOf(someone.token), await statusOf(child.jwt), await statusOf(other.token)]).toEqual([
      401, 401, 200,
    ])
    expect((await app.call('POST', REVOKE, { token: someone.token })).status).toBe(401)
    expect(await app.events()).toContain(`session.revoke ${someone.session.sessionId}`)
  })

  test('of a child session leaves its parent valid', async () => {
    const someone = await user()
    const child = await openChild(someone)
    await app.call('POST', REVOKE, { token: child.jwt })
    expect([await statusOf(someone.token), await statusOf(child.jwt)]).toEqual([200, 401])
  })

  test('by the refresh token of a child leaves its parent valid, unless the family is named', async () => {
    const someone = await user()
    const { userId, sessionId } = { userId: someone.user.id, sessionId: someone.session.sessionId }
    const parent = (await findSession(app.db, { id: sessionId }))!
    const origin = { address: null, userAgent: null }
    const end = async (more: { family?: boolean }) => {
      const child = (await issueSession(deps(), app.db, { userId, origin, parent, now: now() }))!
      const input = {
        caller: { userId, sessionId },
        all: false,
        refreshToken: child.refreshToken!,
        now: now(),
        ...more,
      }
      const ended = await inTransaction(app.db, (tx) => signOut(tx, input))
      return { hasChild: ended.includes(child.sessionId), hasParent: ended.includes(sessionId) }
    }
    expect(await end({})).toEqual({ hasChild: true, hasParent: false })
    expect(await end({ family: false })).toEqual({ hasChild: true, hasParent: false })
    expect(await end({ family: true })).toEqual({ hasChild: true, hasParent: true })
  })

  test('revokes all own sessions, or one by its refresh token, and none of another user', async () => {
    const [someone, stranger] = [await user(), await user()]
    const open = () =>
      issueSession(deps(), app.db, { userId: someone.user.id, origin: { address: null, userAgent: null }, now: now() })
    const [second, third] = [(await open())!, (await open())!]
    const revoke = (body: unknown) => app.call('POST', REVOKE, { token: someone.token, body })
    expect((await revoke({ refresh_token: stranger.session.refreshToken })).body.data).toEqual({ revoked: 0 })
    expect(await statusOf(stranger.token)).toBe(200)
    expect((await revoke({ refresh_token: second.refreshToken })).body.data).toEqual({ revoked: 1 })
    expect([await statusOf(second.jwt), await statusOf(third.jwt), await statusOf(someone.token)]).toEqual([
      401, 200, 200,
    ])
    expect((await revoke({ all: true })).body.data).toEqual({ revoked: 2 })
    expect([await statusOf(third.jwt), await statusOf(someone.token)]).toEqual([401, 401])
  })

  test('is refused for an API key, without a token, and with an unknown member', async () => {
    const someone = await user()
    const body = { name: 'key', permissions: ['realtime:auth'] }
    const { key } = (await app.call('POST', '/api/v3/identity/api-key', { token: someone.token, body })).body.data
    expect(await app.call('POST', REVOKE, { token: key, body: { all: true } })).toMatchObject({ status: 409 })
    expect(await statusOf(someone.token)).toBe(200)
    expect((await app.call('POST', REVOKE)).status).toBe(401)
    expect((await app.call('POST', REVOKE, { token: someone.token, body: { session: 'x' } })).status).toBe(422)
  })
})

describe('reading the session', () => {
  test('shows session, user, accounts and permissions', async () => {
    const someone = await user()
    const reply = await app.call('GET', SESSION, { token: someone.token })
    expect(reply.body.data).toEqual({
      session: {
        document_id: someone.session.sessionId,
        parent: null,
        client_id: null,
        scope: null,
        address: '127.0.0.1',
        user_agent: 'test',
        amr: [],
        acr: 'aal1',
        auth_time: now().toISOString(),
        last_used_at: now().toISOString(),
        expires_at: new Date(app.clock.now() + SESSION_LIFETIME_MS).toISOString(),
        created_at: now().toISOString(),
        updated_at: now().toISOString(),
      },
      api_key: null,
      user: { document_id: someone.user.id, email: someone.user.email, name: someone.user.name, avatar_url: null },
      account: null,
      accounts: [],
      closed_accounts: [],
      permissions: [],
      account_permissions: expect.arrayContaining(['realtime:auth', 'account:find-one', 'contract:*']),
      membership_permissions: [],
      key_permissions: null,
    })
  })

  test('has the account with the longest membership by default, and no account that the user left', async () => {
    const root = await app.administrator('owner')
    const someone = await user()
    const make = async (name: string) => {
      const { data } = (await app.call('POST', '/api/v3/identity/account', { token: root.token, body: { name } })).body
      app.clock.advance(1000)
      const path = `/api/v3/identity/account/${data.document_id}/member`
      await app.call('POST', path, { token: root.token, body: { user: someone.user.id } })
      return { id: data.document_id, path }
    }
    const [first, second] = [await make('First'), await make('Second')]
    const session = await issueSession(deps(), app.db, {
      userId: someone.user.id,
      origin: { address: null, userAgent: null },
      now: now(),
    })
    expect(session!.account).toEqual({ id: first.id, name: 'First' })
    const read = async () => (await app.call('GET', SESSION, { token: session!.jwt })).body.data
    expect(await read()).toMatchObject({
      account: { document_id: first.id },
      accounts: [{ name: 'First' }, { name: 'Second' }],
    })
    await app.call('DELETE', first.path, { token: root.token, body: { user: someone.user.id } })
    expect(await read()).toMatchObject({ account: null, accounts: [{ document_id: second.id }] })
  })

  test('is refused without a token', async () => {
    expect(await app.call('GET', SESSION)).toMatchObject({
      status: 401,
      body: { code: 'unauthenticated' },
      headers: { 'www-authenticate': 'Bearer' },
    })
  })
})

describe('authentication', () => {
  test.each([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['BEARER   abc  ', 'abc'],
    ['Bearer', undefined],
    ['Bearer ', undefined],
    ['Bearer a b', undefined],
    ['Basic abc', undefined],
    ['abc', undefined],
    [undefined, undefined],
  ])('reads %j as the token %j', (header, token) => {
    expect(readBearerToken(header)).toBe(token)
  })

  test('accepts a session only with its user and an unexpired JWT', async () => {
    const [first, other] = [await user(), await user()]
    const authenticate = buildAuthenticate({
      db: app.db,
      clock: app.clock,
      sessionSecrets: app.keys.secrets,
      issuer: app.keys.issuer,
      cache: buildCallerCache(() => false),
      findPermissionsOf,
    })
    expect(await authenticate(`Bearer ${first.token}`)).toMatchObject({ userId: first.user.id, apiKeyId: null })
    await app.db
      .updateTable('session')
      .set({ user: other.user.id })
      .where('document_id', '=', first.session.sessionId)
      .execute()
    expect(await authenticate(`Bearer ${first.token}`)).toBeUndefined()
    expect(await authenticate(`Bearer ${other.token}`)).toBeDefined()
    app.clock.advance(3_605_000)
    expect(await authenticate(`Bearer ${other.token}`)).toBeUndefined()
  })

  test('refuses a user whose row was disabled or deleted by any means', async () => {
    const someone = await user()
    const setUser = (change: { is_actived?: boolean; deleted_at?: Date | null }) =>
      app.db.updateTable('user').set(change).where('document_id', '=', someone.user.id).execute()
    expect(await statusOf(someone.token)).toBe(200)
    await setUser({ is_actived: false })
    expect(await statusOf(someone.token)).toBe(401)
    await setUser({ is_actived: true, deleted_at: now() })
    expect(await statusOf(someone.token)).toBe(401)
    await setUser({ deleted_at: null })
    expect(await statusOf(someone.token)).toBe(200)
  })

  test('leaves deleted accounts out of those of a caller', async () => {
    const someone = await user()
    const deletedAt = { deleted_at: now() }
    const account = await openAccountFor({ ids: app.ids }, app.db, { name: 'A', userId: someone.user.id, now: now() })
    const authenticate = buildAuthenticate({
      db: app.db,
      clock: app.clock,
      sessionSecrets: app.keys.secrets,
      issuer: app.keys.issuer,
      cache: buildCallerCache(() => false),
      findPermissionsOf,
    })
    expect((await authenticate(`Bearer ${someone.token}`))?.accounts).toEqual([account.id])
    await app.db.updateTable('account').set(deletedAt).where('document_id', '=', account.id).execute()
    expect((await authenticate(`Bearer ${someone.token}`))?.accounts).toEqual([])
  })

  test('expires a child session with its parent at the latest', async () => {
    const someone = await user()
    const endsAt = new Date(app.clock.now() + SESSION_LIFETIME_MS)
    app.clock.advance(24 * 3_600_000)
    const child = await openChild(someone)
    expect(await findSession(app.db, { id: child.sessionId })).toMatchObject({
      parentId: someone.session.sessionId,
      expiresAt: endsAt,
    })
    expect(child.refreshToken).toBeNull()
  })

  test('opens no session for a user who was disabled concurrently', async () => {
    const someone = await user()
    await app.db.updateTable('user').set({ is_actived: false }).where('document_id', '=', someone.user.id).execute()
    const origin = { address: null, userAgent: null }
    expect(await issueSession(deps(), app.db, { userId: someone.user.id, origin, now: now() })).toBeUndefined()
  })
})

describe('maintenance', () => {
  test('deletes sessions that ended before a time, children first, and keeps the rest', async () => {
    const someone = await user()
    const child = await openChild(someone)
    const endsAt = new Date(app.clock.now() + SESSION_LIFETIME_MS)
    const isKept = async (id: SessionId) => (await findSession(app.db, { id })) !== undefined
    await deleteEndedSessions(app.db, endsAt, 10_000)
    expect([await isKept(someone.session.sessionId), await isKept(child.sessionId)]).toEqual([true, true])
    const later = new Date(endsAt.getTime() + 1)
    await deleteEndedSessions(app.db, later, 10_000)
    expect([await isKept(someone.session.sessionId), await isKept(child.sessionId)]).toEqual([true, false])
    expect(await deleteEndedSessions(app.db, later, 10_000)).toBeGreaterThan(0)
    expect(await isKept(someone.session.sessionId)).toBe(false)
  })
})

test('a session that moves to another account while its account is cleared stays in the new one', async () => {
  const someone = await user()
  const open = (name: string) => openAccountFor({ ids: app.ids }, app.db, { name, userId: someone.user.id, now: now() })
  const [left, joined] = [(await open('Left')).id, (await open('Joined')).id]
  const { sessionId } = someone.session
  const move = (account: AccountId) => (db: typeof app.db) =>
    db.updateTable('session').set({ account }).where('document_id', '=', sessionId).execute()
  const clear = () => inTransaction(app.db, (tx) => leaveAccount(tx, { account: left, userId: 'all', now: now() }))
  const readAccount = async () => (await findSession(app.db, { id: sessionId }))?.accountId
  await move(left)(app.db)
  await whileHeld(app.db, move(joined), clear)
  expect(await readAccount()).toBe(joined)
  await move(left)(app.db)
  await clear()
  expect(await readAccount()).toBeNull()
})

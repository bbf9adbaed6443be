import { describe, expect, test } from 'vitest'
import { buildIdentityApp, NO_ID, type User } from '../../../../test/harness/app/identity-app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { systemRandom } from '../../../base/random.ts'
import { findSession } from '../session.store.ts'
import { issueSession, SESSION_LIFETIME_MS } from '../session.ts'

const SESSIONS = '/api/v3/identity/session'
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0'

const app = await openForFile(buildIdentityApp())

let count = 0
const user = (roles: readonly string[] = []) => app.user(`lister-${count++}`, roles)
const now = () => new Date(app.clock.now())
const deps = () => ({ ids: app.ids, random: systemRandom, keys: app.keys })
const open = async (user: User, more: object = {}) =>
  (await issueSession(deps(), app.db, {
    userId: user.user.id,
    origin: { address: '192.0.2.7', userAgent: FIREFOX },
    amr: ['pwd'],
    now: now(),
    ...more,
  }))!
const list = (token: string, query = '') => app.call('GET', `${SESSIONS}${query}`, { token })
const end = (token: string, id: string) => app.call('DELETE', `${SESSIONS}/${id}`, { token })
const statusOf = async (token: string) => (await app.call('GET', '/api/v3/auth/session', { token })).status
const keyOf = async (user: User, permissions: string[]) => {
  const body = { name: 'key', permissions }
  return (await app.call('POST', '/api/v3/identity/api-key', { token: user.token, body })).body.data.key as string
}

describe('the list of sessions', () => {
  test("shows the caller's living sessions with device, last use and sign-in, and which one is current", async () => {
    const someone = await user()
    await user()
    app.clock.advance(1000)
    const second = await open(someone)
    const { body } = await list(someone.token)
    expect(body.data).toMatchObject([
      { document_id: second.sessionId, is_current: false, device: 'Firefox on Linux', address: '192.0.2.7' },
      { document_id: someone.session.sessionId, is_current: true, device: null, user: someone.user.id },
    ])
    expect(body.data).toMatchObject([
      { program: 'Firefox', system: 'Linux' },
      { program: null, system: null },
    ])
    expect(body.data[0]).toMatchObject({
      user_agent: FIREFOX,
      amr: ['pwd'],
      acr: 'aal1',
      auth_time: now().toISOString(),
      last_used_at: now().toISOString(),
      parent: null,
      account: null,
    })
  })

  test('leaves revoked and expired sessions out, at the very instant', async () => {
    const someone = await user()
    const second = await open(someone)
    await end(someone.token, second.sessionId)
    expect((await list(someone.token)).body.data).toHaveLength(1)
    app.clock.advance(SESSION_LIFETIME_MS - 1000)
    const third = await open(someone)
    expect((await list(third.jwt)).body.data).toHaveLength(2)
    app.clock.advance(1000)
    expect((await list(third.jwt)).body.data.map((row: { document_id: string }) => row.document_id)).toEqual([
      third.sessionId,
    ])
  })

  test('shows all users to a caller with session:find-all, and filters by user', async () => {
    const [someone, reader] = [await user(), await app.callerWith('session reader', ['session:find-all'])]
    const mine = (await list(someone.token, `?filters=user|eq|${reader.user.id}`)).body.data
    expect(mine).toEqual([])
    const theirs = (await list(reader.token, `?filters=user|eq|${someone.user.id}`)).body.data
    expect(theirs).toMatchObject([{ document_id: someone.session.sessionId, is_current: false }])
  })

  test('is open to an API key with the permission only, for the sessions of its owner', async () => {
    const reader = await app.callerWith('key maker', ['session:find-all', 'contract:create'])
    expect((await list(await keyOf(reader, ['contract:create']))).status).toBe(403)
    expect((await list(await keyOf(reader, ['session:find-all']))).status).toBe(200)
    expect((await app.call('GET', SESSIONS)).status).toBe(401)
  })

  test('tells the last use of a session to five minutes', async () => {
    const someone = await user()
    const lastUse = async () => (await findSession(app.db, { id: someone.session.sessionId }))!.lastUsedAt
    const openedAt = now()
    app.clock.advance(5 * 60_000 - 1)
    await statusOf(someone.token)
    expect(await lastUse()).toEqual(openedAt)
    app.clock.advance(1)
    await statusOf(someone.token)
    expect(await lastUse()).toEqual(now())
  })
})

describe('ending a session', () => {
  test('ends it with those opened from it, at any depth, and no other', async () => {
    const someone = await user()
    const root = await open(someone)
    const child = await open(someone, { parent: (await findSession(app.db, { id: root.sessionId }))!, amr: undefined })
    const grandchild = await open(someone, {
      parent: (await findSession(app.db, { id: child.sessionId }))!,
      amr: undefined,
    })
    expect(await findSession(app.db, { id: grandchild.sessionId })).toMatchObject({ amr: ['pwd', 'sso'], acr: 'aal1' })
    expect(await end(someone.token, root.sessionId)).toMatchObject({ status: 200, body: { data: { revoked: 3 } } })
    const statuses = [root.jwt, child.jwt, grandchild.jwt, someone.token].map(statusOf)
    expect(await Promise.all(statuses)).toEqual([401, 401, 401, 200])
    expect(await app.events()).toContain(`session.delete ${grandchild.sessionId}`)
    expect((await end(someone.token, root.sessionId)).status).toBe(404)
  })

  test("does not reach another user's session without the permission: 404, as for an unknown one", async () => {
    const [someone, stranger] = [await user(), await user()]
    expect((await end(stranger.token, someone.session.sessionId)).status).toBe(404)
    expect((await end(stranger.token, NO_ID)).status).toBe(404)
    expect(await statusOf(someone.token)).toBe(200)
  })

  test('of another user needs the permission and everything that the user holds', async () => {
    const root = await app.administrator('ended root')
    const plain = await app.callerWith('plain', [])
    const helper = await app.callerWith('helper', ['session:delete', 'realtime:auth', 'account:find-one', 'contract:*'])
    expect((await end(helper.token, root.session.sessionId)).status).toBe(403)
    expect(await statusOf(root.token)).toBe(200)
    expect((await end(helper.token, plain.session.sessionId)).status).toBe(200)
    expect(await statusOf(plain.token)).toBe(401)
  })

  test('by two requests at once succeeds once', async () => {
    const someone = await user()
    const second = await open(someone)
    const replies = await Promise.all([1, 2, 3].map(() => end(someone.token, second.sessionId)))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 404, 404])
  })
})

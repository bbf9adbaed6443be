import { describe, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../test/harness/app/known-password.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AuditRecord } from './audit.store.ts'
import { buildEqualEntries } from './equal-entries.ts'

const LOG = '/api/v3/audit/log'
const ENV = {
  ...{ APP_ENV: 'development', RATE_LIMIT_STRICT_PER_MINUTE: '100000', TRUST_PROXY: 'loopback' },
  ...{ SOCIAL_GITHUB_CLIENT_ID: 'client', SOCIAL_GITHUB_CLIENT_SECRET: 'secret' },
}

const app = await openForFile(createTestApp({ env: ENV }))
/** Another process on the same database. */
const other = await openForFile(createTestApp({ env: ENV, database: app.database, clock: app.clock }))

interface Entry {
  action: string
  outcome: string
  user: string | null
  address: string | null
  count: number
  detail: Record<string, unknown>
}
/** The entries since the test began. */
const readEntries = async (at: TestApp = app): Promise<Entry[]> => {
  const { rows } = await at.database.pool.query('select * from audit_log order by created_at, document_id')
  return rows
}
const clear = () => app.database.pool.query('delete from audit_log')
const flush = () => Promise.all([app.app.equalEntries.flush(), other.app.equalEntries.flush()])
/** Begins a minute that no other test has. */
const nextMinute = async () => {
  app.clock.set(app.clock.now() - (app.clock.now() % 60_000) + 60_000)
  await flush()
  await clear()
}

/** Posts as somebody without any cookie. */
const postForm = (at: TestApp, url: string, { address = '10.9.0.1', method = 'POST' as 'POST' | 'GET' } = {}) =>
  at.app.server.inject({
    method,
    url,
    headers: {
      'x-forwarded-for': address,
      'sec-fetch-site': 'cross-site',
      ...(method === 'POST' && { 'content-type': 'application/x-www-form-urlencoded' }),
    },
    ...(method === 'POST' && { payload: 'a=b' }),
  })

describe('equal refusals', () => {
  test.each([
    ['/auth/sign-out', 'POST'],
    ['/auth/oauth/consent', 'POST'],
    ['/auth/oauth/switch', 'POST'],
    ['/api/v3/auth/login/oauth/dev/callback?state=junk&code=junk', 'GET'],
    ['/api/v3/auth/login/oauth/dev/callback?error=junk', 'GET'],
    ['/api/v3/auth/login/oauth/dev/callback', 'POST'],
  ] as const)(
    'of somebody unknown to %s (%s) are one counted entry a minute, of two processes',
    async (url, method) => {
      await nextMinute()
      const posts = Array.from({ length: 40 }, (_, step) => postForm(step % 2 === 0 ? app : other, url, { method }))
      await Promise.all(posts)
      for (let step = 0; step < 10; step += 1) await postForm(app, url, { method })
      await flush()
      expect(await readEntries()).toMatchObject([{ count: 50, user: null, address: '10.9.0.1' }])
      await nextMinute()
      await postForm(other, url, { method })
      expect(await readEntries()).toMatchObject([{ count: 1 }])
    },
  )

  test('of a sign-in are one entry for each e-mail address, whether a user has it or not', async () => {
    await nextMinute()
    const email = 'known@example.com'
    const id = await createUserWithPassword(app, { email }, 'correct horse battery')
    await clear()
    const tries = [email, 'nobody@example.com', 'no-one@example.com'].flatMap((item) => [
      item,
      item.toUpperCase(),
      item,
    ])
    for (const email of tries) {
      const body = { email: email, password: 'wrong horse battery' }
      expect((await app.anonymous('POST', '/api/v3/auth/login/local', body)).status).toBe(401)
    }
    await flush()
    expect(await readEntries()).toMatchObject([
      { action: 'login.local', count: 3, user: id },
      { action: 'login.local', count: 3, user: null },
      { action: 'login.local', count: 3, user: null },
    ])
  })

  test('of a viewer who reads the audit log are one entry, with who it was', async () => {
    await nextMinute()
    const { call, userId } = await app.signInMember()
    await clear()
    for (let step = 0; step < 30; step += 1) expect((await call('GET', LOG)).status).toBe(403)
    await flush()
    expect(await readEntries()).toMatchObject([
      { action: 'audit-log.find-all', outcome: 'failure', user: userId, count: 30 },
    ])
    const { body } = await app.admin('GET', `${LOG}?filters=user|eq|${userId}`)
    expect(body.data).toMatchObject([{ count: 30 }])
  })

  test('that differ in action, caller, network or reason are entries of their own', async () => {
    await nextMinute()
    const [first, second] = [await app.signInMember(), await app.signInMember()]
    await clear()
    await first.call('GET', LOG)
    await second.call('GET', LOG)
    await first.call('GET', '/api/v3/identity/role')
    await postForm(app, '/auth/sign-out', { address: '10.9.0.1' })
    await postForm(app, '/auth/sign-out', { address: '10.9.0.2' })
    await postForm(app, '/auth/sign-out', { address: '2001:db8:1:2::1' })
    await postForm(app, '/auth/sign-out', { address: '2001:db8:1:2::2' })
    await flush()
    const counts = (await readEntries()).map(({ count }) => count)
    expect(counts).toEqual([1, 1, 1, 1, 1, 2])
  })

  test('that differ in the provider of a sign-in are entries of their own', async () => {
    await nextMinute()
    const callback = (provider: string) => `/api/v3/auth/login/oauth/${provider}/callback?error=junk`
    for (const provider of ['dev', 'github', 'dev']) await postForm(app, callback(provider), { method: 'GET' })
    await flush()
    expect(await readEntries()).toMatchObject([
      { count: 2, detail: { provider: 'dev' } },
      { count: 1, detail: { provider: 'github' } },
    ])
  })

  test('from very many networks are a bounded number of entries, and none is lost', async () => {
    await nextMinute()
    for (let step = 0; step < 1_100; step += 1)
      await postForm(app, '/auth/sign-out', { address: `10.${(step >> 8) + 10}.${step & 255}.1` })
    await flush()
    const entries = await readEntries()
    expect(entries).toHaveLength(1_001)
    expect(entries.reduce((sum, { count }) => sum + count, 0)).toBe(1_100)
    expect(entries.find(({ address }) => address === null)).toMatchObject({ count: 100, detail: { is_of_many: true } })
  })

  test('are all written when a process stops', async () => {
    await nextMinute()
    const leaving = await createTestApp({ env: ENV, database: app.database, clock: app.clock })
    for (let step = 0; step < 25; step += 1) await postForm(leaving, '/auth/sign-out')
    expect(await readEntries()).toMatchObject([{ count: 1 }])
    await leaving.app.stop()
    expect(await readEntries()).toMatchObject([{ count: 25 }])
  })

  test('stay counted while the database cannot be written, and are added once', async () => {
    await nextMinute()
    let isBroken = true
    const counted = buildEqualEntries({
      db: new Proxy(app.database.db, {
        get: (db, name) => {
          if (name === 'executeQuery' && isBroken) return () => Promise.reject(new Error('no database'))
          const member = Reflect.get(db, name, db)
          return typeof member === 'function' ? member.bind(db) : member
        },
      }),
      clock: app.clock,
    })
    const record: AuditRecord = {
      ...{ id: app.app.ids.next<'audit entry'>(), action: 'a.b', outcome: 'failure' },
      ...{ userId: null, sessionId: null, apiKeyId: null, clientId: null, account: null, target: null },
      ...{ portalSession: null, externalUser: null },
      ...{ address: '10.9.9.9', requestId: null, detail: {}, createdAt: new Date(app.clock.now()) },
    }
    const first = counted.place(record)!
    counted.noted(first)
    expect(counted.place(record)).toBeUndefined()
    await expect(counted.flush()).rejects.toThrow('no database')
    expect(counted.place(record)).toBeUndefined()
    isBroken = false
    await Promise.all([counted.flush(), counted.flush()])
    expect((await readEntries()).map(({ count }) => count)).toEqual([2])
  })
})

test('a success with a row of its own is never counted with others', async () => {
  await nextMinute()
  for (let step = 0; step < 3; step += 1)
    expect((await app.admin('POST', '/api/v3/identity/account', { name: 'Example' })).status).toBe(201)
  expect((await readEntries()).map(({ count }) => count)).toEqual([1, 1, 1])
})

test('forms have the strict limit', async () => {
  await using strict = await createTestApp({ env: { ...ENV, RATE_LIMIT_STRICT_PER_MINUTE: '3' } })
  const statuses = []
  for (let step = 0; step < 5; step += 1) statuses.push((await postForm(strict, '/auth/sign-out')).statusCode)
  expect(statuses).toEqual([403, 403, 403, 429, 429])
  await strict.app.equalEntries.flush()
  const refused = (await readEntries(strict)).filter(({ action }) => action === 'session.revoke')
  expect(refused).toMatchObject([{ count: 3 }])
})

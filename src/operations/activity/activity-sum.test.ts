import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { buildActivityCounter } from './activity-counter.ts'
import { deleteOldSums } from './activity-sum.store.ts'

const SIGN_INS = '/api/v3/identity/dashboard/sign-in'
const MESSAGES = '/api/v3/realtime/dashboard/message'
const NOON = Date.UTC(2026, 8, 11, 12, 20)
const MINUTE_MS = 60_000

const fail = (fields: { err: Error }) => {
  throw fields.err
}

const t = await openForFile(createTestApp())
t.clock.set(NOON)
const key = { name: 'reads', permissions: ['*:*'] }
const made = await t.admin('POST', '/api/v3/identity/api-key', key)
const call = t.callAs(made.body.data.key)
// The sign-in of the administrator of the tests is not counted here.
await t.database.pool.query('delete from audit_log')
const counter = buildActivityCounter({ db: t.database.db, clock: t.clock, logger: { warn: fail } as never })

const enter = (action: string, at: number, rest: { outcome?: string; count?: number; reason?: string } = {}) =>
  t.database.pool.query(
    `insert into audit_log (document_id, action, outcome, address, request_id, detail, count, created_at)
     values (gen_random_uuid(), $1, $2, '127.0.0.1', 'r', $3, $4, $5)`,
    [action, rest.outcome ?? 'success', { reason: rest.reason }, rest.count ?? 1, new Date(at)],
  )

const publish = (status: string, createdAt: number, endedAt: number) =>
  t.database.pool.query(
    `insert into realtime_message_ended (document_id, account, event, status, attempts, results, created_at, ended_at, fence)
     values (gen_random_uuid(), gen_random_uuid(), 'contract.update', $1, 1, 1, $2, $3, 1)`,
    [status, new Date(createdAt), new Date(endedAt)],
  )

const read = async (path: string, range = '1h') => (await call('GET', `${path}?range=${range}`)).body.data

test('sign-ins count once, two minutes after their end, by how they ended, in their bucket of each range', async () => {
  await enter('login.local', NOON)
  await enter('login.local', NOON + 1_000, { outcome: 'failure', count: 7, reason: 'wrong_password' })
  await enter('login.local', NOON + 2_000, { outcome: 'failure', reason: 'second_factor_required' })
  await enter('login.factor', NOON + 3_000)
  await enter('login.oauth-start', NOON + 4_000)
  await enter('login.oauth-callback', NOON + 5_000)
  await enter('sso.exchange', NOON + 6_000, { outcome: 'failure', reason: 'expired' })
  t.clock.set(NOON + 2 * MINUTE_MS - 1)
  await counter.count()
  expect(await read(SIGN_INS)).toMatchObject({ succeeded: 0, refused: 0 })
  t.clock.set(NOON + 2 * MINUTE_MS)
  await Promise.all([counter.count(), counter.count(), counter.count()])
  await counter.count()
  for (const [range, at] of [
    ['1h', '2026-09-11T12:20:00.000Z'],
    ['24h', '2026-09-11T12:00:00.000Z'],
    ['7d', '2026-09-11T12:00:00.000Z'],
    ['30d', '2026-09-11T00:00:00.000Z'],
  ] as const) {
    const data = await read(SIGN_INS, range)
    expect(data, range).toMatchObject({ range, succeeded: 3, refused: 8 })
    expect(data.buckets.filter(({ succeeded }: { succeeded: number }) => succeeded > 0)).toEqual([
      { at, succeeded: 3, refused: 8 },
    ])
    expect(
      new Set(data.ways.map(({ way, sign_ins: count }: { way: string; sign_ins: number }) => [way, count].join())),
    ).toEqual(new Set(['password,1', 'second-factor,1', 'provider,1']))
  }
})

test('realtime messages count by when they ended, late ones too, and none twice', async () => {
  const at = NOON + 10 * MINUTE_MS
  await publish('published', at - 5_000, at + 1_000)
  await publish('published', at, at + 2_000)
  await publish('exhausted', at - 3_600_000, at + 3_000)
  await publish('rejected', at + 59_999, at + MINUTE_MS + 1)
  t.clock.set(at + 2 * MINUTE_MS)
  await counter.count()
  t.clock.set(at + 3 * MINUTE_MS)
  await counter.count()
  const data = await read(MESSAGES)
  expect(data).toMatchObject({ published: 2, rejected: 1, exhausted: 1, bucket_seconds: 60 })
  expect(data.buckets.slice(-4)).toMatchObject([
    { at: new Date(at).toISOString(), published: 2, rejected: 0, exhausted: 1 },
    { published: 0, rejected: 1, exhausted: 0 },
    { published: 0 },
    { published: 0 },
  ])
})

test('after a pause the counter goes on where it was, a day in a transaction', async () => {
  const before = (await read(SIGN_INS, '30d')).succeeded
  const at = NOON + 30 * 3_600_000
  await enter('login.passkey', at)
  t.clock.set(NOON + 60 * 3_600_000)
  await counter.count()
  expect((await read(SIGN_INS, '30d')).succeeded).toBe(before + 1)
})

test('sums end with the range that they serve', async () => {
  const countRows = async (width: string) =>
    (await t.database.pool.query('select from activity_sum where width = $1', [width])).rowCount
  expect(await deleteOldSums(t.database.db, new Date(t.clock.now()), 1_000)).toBeGreaterThan(0)
  expect([await countRows('minute'), await countRows('hour')]).toEqual([0, 0])
  expect(await countRows('day')).toBeGreaterThan(0)
  t.clock.advance(32 * 24 * 3_600_000)
  await deleteOldSums(t.database.db, new Date(t.clock.now()), 1_000)
  expect(await countRows('day')).toBe(0)
})

test.each([
  ['user:dashboard-sign-ins', SIGN_INS],
  ['realtime:dashboard-messages', MESSAGES],
])('the reads need a token, %s and a range', async (permission, path) => {
  expect((await t.anonymous('GET', path)).status).toBe(401)
  const refused = await (await t.signInMember([])).call('GET', path)
  expect([refused.status, refused.body.detail]).toEqual([403, expect.stringContaining(permission)])
  expect((await call('GET', `${path}?range=2h`)).status).toBe(422)
})

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openProvisioning, type ProvisioningFixture } from '../../../test/harness/provisioning/provisioning-service.ts'
import { decideSync } from './job.ts'
import type { UserAtTarget } from './job-record.ts'
import { findBatchSize, JOB_BATCH_SIZE, JOB_OPEN_LIMIT } from './job-worker.ts'

const USERS = '/api/v3/identity/user'
const TARGETS = '/api/v3/provisioning/target'
const JOBS = '/api/v3/provisioning/job'

describe('decideSync', () => {
  const user: UserAtTarget = { isDeleted: false, waiting: 0, digest: 'a', deliveredDigest: null }
  test.each([
    ['sync', {}, 'user.provisioned'],
    ['sync', { deliveredDigest: 'a' }, 'user.provisioned'],
    ['sync', { isDeleted: true, deliveredDigest: 'a' }, null],
    ['sync', { waiting: 1 }, null],
    ['reconcile', {}, 'user.provisioned'],
    ['reconcile', { deliveredDigest: 'a' }, null],
    ['reconcile', { deliveredDigest: 'b' }, 'user.updated'],
    ['reconcile', { deliveredDigest: 'unknown' }, 'user.updated'],
    ['reconcile', { isDeleted: true, deliveredDigest: 'unknown' }, 'user.deprovisioned'],
    ['reconcile', { deliveredDigest: 'deleted' }, 'user.provisioned'],
    ['reconcile', { isDeleted: true }, null],
    ['reconcile', { isDeleted: true, deliveredDigest: 'deleted' }, null],
    ['reconcile', { isDeleted: true, deliveredDigest: 'b' }, 'user.deprovisioned'],
    ['reconcile', { deliveredDigest: 'b', waiting: 2 }, null],
  ] as const)('of a %s and a user with %j sends %s', (kind, change, type) => {
    expect(decideSync(kind, { ...user, ...change })).toBe(type)
  })
})

test('a job looks at no more users than it may have deliveries open', () => {
  expect(findBatchSize({ mayRun: true, open: 0 })).toBe(JOB_BATCH_SIZE)
  expect(findBatchSize({ mayRun: true, open: JOB_OPEN_LIMIT - 3 })).toBe(3)
  expect(findBatchSize({ mayRun: true, open: JOB_OPEN_LIMIT + 3 })).toBe(0)
  expect(findBatchSize({ mayRun: false, open: 0 })).toBe(0)
})

describe('jobs', () => {
  let fixture: ProvisioningFixture
  let countUsers: () => Promise<{ living: number; all: number }>
  beforeAll(async () => {
    fixture = await openProvisioning()
    countUsers = async () => {
      const { rows } = await fixture.t.database.pool.query(
        'select count(*)::int as all, (count(*) filter (where deleted_at is null))::int as living from "user"',
      )
      return rows[0]
    }
    for (let n = 0; n < 5; n += 1) await fixture.makeUser()
    const gone = await fixture.makeUser()
    await fixture.call('DELETE', `${USERS}/${gone.id}`)
  })
  afterEach(async () => {
    fixture.receiver.behave({ kind: 'status', status: 200 })
    for (const row of await fixture.call('GET', TARGETS)) await fixture.call('DELETE', `${TARGETS}/${row.document_id}`)
  })
  afterAll(() => fixture[Symbol.asyncDispose]())

  const start = async (target: string, kind = 'sync') =>
    (await fixture.call('POST', `${TARGETS}/${target}/${kind}`)).document_id as string

  test('a sync fills a new target with every living user, and counts what became of each', async () => {
    const { id, path } = await fixture.makeTarget()
    const job = await start(id)
    expect(await fixture.call('GET', `${JOBS}/${job}`)).toMatchObject({ status: 'running', kind: 'sync', processed: 0 })
    await fixture.t.settle()
    const { living, all } = await countUsers()
    const got = fixture.received(path)
    expect(got).toHaveLength(living)
    expect(new Set(got.map(({ body }) => body.type))).toEqual(new Set(['user.provisioned']))
    expect(await fixture.call('GET', `${JOBS}/${job}`)).toMatchObject({
      status: 'done',
      total: all,
      processed: all,
      queued: living,
      deliveries: { waiting: 0, delivered: living, failed: 0, dead_letter: 0, cancelled: 0 },
    })
  })

  test('a sync sends nothing twice of a user whose change waits already', async () => {
    const { id, path } = await fixture.makeTarget()
    const user = await fixture.makeUser()
    await start(id)
    await fixture.t.settle()
    expect(fixture.received(path).filter(({ body }) => body.data.user.document_id === user.id)).toHaveLength(1)
  })

  test('a reconcile sends what the target refused or never got, and nothing else', async () => {
    const { id, path } = await fixture.makeTarget()
    await start(id)
    await fixture.t.settle()
    const before = fixture.received(path).length
    await start(id, 'reconcile')
    await fixture.t.settle()
    expect(fixture.received(path)).toHaveLength(before)
    const user = await fixture.makeUser()
    await fixture.t.settle()
    fixture.receiver.behaveNext({ kind: 'status', status: 422 })
    await fixture.call('PATCH', `${USERS}/${user.id}`, { name: 'Refused' })
    await fixture.t.settle()
    const job = await start(id, 'reconcile')
    await fixture.t.settle()
    expect(fixture.received(path).at(-1)?.body).toMatchObject({
      type: 'user.updated',
      data: { user: { document_id: user.id, name: 'Refused' } },
    })
    expect(await fixture.call('GET', `${JOBS}/${job}`)).toMatchObject({ status: 'done', queued: 1 })
  })

  test('a reconcile tells of a deletion that the target refused', async () => {
    const { id, path } = await fixture.makeTarget()
    const user = await fixture.makeUser()
    await fixture.t.settle()
    fixture.receiver.behaveNext({ kind: 'status', status: 400 })
    await fixture.call('DELETE', `${USERS}/${user.id}`)
    await fixture.t.settle()
    await start(id, 'reconcile')
    await fixture.t.settle()
    expect(
      fixture
        .received(path)
        .filter(({ body }) => body.data.user.document_id === user.id)
        .map(({ body }) => body.type),
    ).toEqual(['user.provisioned', 'user.deprovisioned', 'user.deprovisioned'])
  })

  test('a redrive makes once more what failed last, whole again in the ledger, and leaves what a later change followed', async () => {
    const { id, path } = await fixture.makeTarget()
    const [lost, mended] = [await fixture.makeUser(), await fixture.makeUser()]
    await fixture.t.settle()
    fixture.receiver.behave({ kind: 'status', status: 422 })
    await fixture.call('PATCH', `${USERS}/${lost.id}`, { name: 'Lost' })
    await fixture.call('PATCH', `${USERS}/${mended.id}`, { name: 'Lost too' })
    await fixture.t.settle()
    fixture.receiver.behave({ kind: 'status', status: 200 })
    await fixture.call('PATCH', `${USERS}/${mended.id}`, { name: 'Mended' })
    await fixture.t.settle()
    const before = fixture.received(path).length
    const job = await start(id, 'redrive')
    await fixture.t.settle()
    const again = fixture.received(path).slice(before)
    expect(again).toMatchObject([{ body: { type: 'user.updated', data: { user: { name: 'Lost' } } } }])
    expect(await fixture.call('GET', `${JOBS}/${job}`)).toMatchObject({
      ...{ kind: 'redrive', status: 'done', total: 2, processed: 2, queued: 1 },
      deliveries: { waiting: 0, delivered: 1, failed: 0, dead_letter: 0 },
    })
    const failed = `/api/v3/provisioning/delivery?filters=target|eq|${id}&filters=status|eq|failed`
    expect(await fixture.call('GET', failed)).toMatchObject([{ user: mended.id, attempts: 1 }])
    const next = await start(id, 'redrive')
    await fixture.t.settle()
    expect(await fixture.call('GET', `${JOBS}/${next}`)).toMatchObject({ status: 'done', queued: 0 })
  })

  test('a redrive of a target that still refuses ends with the same deliveries failed, one attempt later', async () => {
    const { id } = await fixture.makeTarget()
    fixture.receiver.behave({ kind: 'status', status: 422 })
    const user = await fixture.makeUser()
    await fixture.t.settle()
    const job = await start(id, 'redrive')
    await fixture.t.settle()
    expect(await fixture.call('GET', `${JOBS}/${job}`)).toMatchObject({ status: 'done', deliveries: { failed: 1 } })
    const own = `/api/v3/provisioning/delivery?filters=target|eq|${id}&filters=user|eq|${user.id}`
    expect(await fixture.call('GET', own)).toMatchObject([{ status: 'failed', attempts: 2, job }])
  })

  test('a paused job queues nothing until it is resumed, and a cancelled one never again', async () => {
    const { id, path } = await fixture.makeTarget()
    const job = await start(id)
    await fixture.call('POST', `${JOBS}/${job}/pause`)
    await fixture.t.settle()
    expect(fixture.received(path)).toEqual([])
    expect((await fixture.tryCall('POST', `${TARGETS}/${id}/sync`)).body.code).toBe('conflict')
    await fixture.call('POST', `${JOBS}/${job}/resume`)
    await fixture.call('POST', `${JOBS}/${job}/cancel`)
    await fixture.t.settle()
    expect(fixture.received(path)).toEqual([])
    expect((await fixture.tryCall('POST', `${JOBS}/${job}/resume`)).status).toBe(409)
    const next = await start(id)
    await fixture.t.settle()
    expect(await fixture.call('GET', `${JOBS}/${next}`)).toMatchObject({ status: 'done' })
  })

  test('a job does not begin before a change that did not see the target has ended', async () => {
    const open = await fixture.t.database.pool.connect()
    try {
      await open.query('begin')
      await open.query(
        `insert into "user" (document_id, email, created_at, updated_at)
         values ('ffffffff-0000-7000-8000-000000000001', 'early@example.com', now(), now())`,
      )
      const { id, path } = await fixture.makeTarget()
      const job = await start(id)
      await fixture.t.settle()
      expect(await fixture.call('GET', `${JOBS}/${job}`)).toMatchObject({ status: 'running', processed: 0 })
      await open.query('commit')
      await fixture.t.settle()
      const emails = fixture.received(path).map(({ body }) => body.data.user.email)
      expect(emails.filter((email) => email === 'early@example.com')).toHaveLength(1)
    } finally {
      open.release()
    }
  })

  test('a job does not wait for transactions that change no user', async () => {
    const open = await fixture.t.database.pool.connect()
    try {
      await open.query('begin; select pg_current_xact_id()')
      const { id } = await fixture.makeTarget()
      const job = await start(id)
      await fixture.t.settle()
      expect(await fixture.call('GET', `${JOBS}/${job}`)).toMatchObject({ status: 'done' })
    } finally {
      await open.query('rollback')
      open.release()
    }
  })

  test('a job whose rounds fail five times has ended as failed until it is resumed, and is deleted after the retention', async () => {
    const { pool } = fixture.t.database
    await pool.query(`
      create function refuse_in_test() returns trigger language plpgsql as $$ begin raise exception 'broken'; end $$;
      create trigger refuse before insert on provisioning_delivery for each row execute function refuse_in_test()`)
    const { id } = await fixture.makeTarget()
    const job = await start(id)
    const read = () => fixture.call('GET', `${JOBS}/${job}`)
    const fail = async () => {
      for (let round = 0; round < 5; round += 1) await fixture.t.settle()
    }
    await fail()
    const endedAt = new Date(fixture.t.clock.now()).toISOString()
    expect(await read()).toMatchObject({ status: 'failed', ended_at: endedAt })
    expect((await fixture.tryCall('POST', `${TARGETS}/${id}/sync`)).body.code).toBe('conflict')
    expect(await fixture.call('POST', `${JOBS}/${job}/resume`)).toMatchObject({ status: 'running', ended_at: null })
    await fail()
    await pool.query('drop trigger refuse on provisioning_delivery')
    const DAY_MS = 86_400_000
    const sweep = async () => (await fixture.t.app.maintenance.sweep()).provisioningJobs
    fixture.t.clock.advance(30 * DAY_MS)
    await sweep()
    expect((await read()).status).toBe('failed')
    fixture.t.clock.advance(1)
    await sweep()
    expect((await fixture.tryCall('GET', `${JOBS}/${job}`)).status).toBe(404)
    await start(id)
  })

  test('a job of a target that is inactive is refused, and the job of a deleted target ends', async () => {
    const { id } = await fixture.makeTarget()
    const job = await start(id)
    await fixture.call('DELETE', `${TARGETS}/${id}`)
    expect(await fixture.call('GET', `${JOBS}/${job}`)).toMatchObject({ status: 'cancelled' })
    const other = await fixture.makeTarget()
    await fixture.call('PATCH', `${TARGETS}/${other.id}/active`, { is_actived: false })
    const refused = await fixture.tryCall('POST', `${TARGETS}/${other.id}/sync`)
    expect([refused.status, refused.body.code]).toEqual([409, 'target_inactive'])
  })
})

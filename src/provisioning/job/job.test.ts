import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openProvisioning, type ProvisioningWorld } from '../../../test/harness/provisioning/provisioning-service.ts'
import { decideSync } from './job.ts'
import type { UserAtTarget } from './job-record.ts'
import { findBatchSize, JOB_BATCH_SIZE, JOB_OPEN_LIMIT } from './job-worker.ts'

const USERS = '/api/v3/identity/user'
const TARGETS = '/api/v3/provisioning/target'
const JOBS = '/api/v3/provisioning/job'

describe('decideSync', () => {
  const user: UserAtTarget = { isDeleted: false, waiting: 0, digest: 'a', deliveredDigest: null }
  it.each([
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

it('a job looks at no more users than it may have deliveries open', () => {
  expect(findBatchSize({ mayRun: true, open: 0 })).toBe(JOB_BATCH_SIZE)
  expect(findBatchSize({ mayRun: true, open: JOB_OPEN_LIMIT - 3 })).toBe(3)
  expect(findBatchSize({ mayRun: true, open: JOB_OPEN_LIMIT + 3 })).toBe(0)
  expect(findBatchSize({ mayRun: false, open: 0 })).toBe(0)
})

describe('jobs', () => {
  let world: ProvisioningWorld
  let countUsers: () => Promise<{ living: number; all: number }>
  beforeAll(async () => {
    world = await openProvisioning()
    countUsers = async () => {
      const { rows } = await world.t.database.pool.query(
        'select count(*)::int as all, (count(*) filter (where deleted_at is null))::int as living from "user"',
      )
      return rows[0]
    }
    for (let n = 0; n < 5; n += 1) await world.makeUser()
    const gone = await world.makeUser()
    await world.call('DELETE', `${USERS}/${gone.id}`)
  })
  afterEach(async () => {
    world.receiver.behave({ kind: 'status', status: 200 })
    for (const row of await world.call('GET', TARGETS)) await world.call('DELETE', `${TARGETS}/${row.document_id}`)
  })
  afterAll(() => world[Symbol.asyncDispose]())

  const start = async (target: string, kind = 'sync') =>
    (await world.call('POST', `${TARGETS}/${target}/${kind}`)).document_id as string

  it('a sync fills a new target with every living user, and counts what became of each', async () => {
    const { id, path } = await world.makeTarget()
    const job = await start(id)
    expect(await world.call('GET', `${JOBS}/${job}`)).toMatchObject({ status: 'running', kind: 'sync', processed: 0 })
    await world.t.settle()
    const { living, all } = await countUsers()
    const got = world.received(path)
    expect(got).toHaveLength(living)
    expect(new Set(got.map(({ body }) => body.type))).toEqual(new Set(['user.provisioned']))
    expect(await world.call('GET', `${JOBS}/${job}`)).toMatchObject({
      status: 'done',
      total: all,
      processed: all,
      queued: living,
      deliveries: { waiting: 0, delivered: living, failed: 0, dead_letter: 0, cancelled: 0 },
    })
  })

  it('a sync sends nothing twice of a user whose change waits already', async () => {
    const { id, path } = await world.makeTarget()
    const user = await world.makeUser()
    await start(id)
    await world.t.settle()
    expect(world.received(path).filter(({ body }) => body.data.user.document_id === user.id)).toHaveLength(1)
  })

  it('a reconcile sends what the target refused or never got, and nothing else', async () => {
    const { id, path } = await world.makeTarget()
    await start(id)
    await world.t.settle()
    const before = world.received(path).length
    await start(id, 'reconcile')
    await world.t.settle()
    expect(world.received(path)).toHaveLength(before)
    const user = await world.makeUser()
    await world.t.settle()
    world.receiver.behaveNext({ kind: 'status', status: 422 })
    await world.call('PATCH', `${USERS}/${user.id}`, { name: 'Refused' })
    await world.t.settle()
    const job = await start(id, 'reconcile')
    await world.t.settle()
    expect(world.received(path).at(-1)?.body).toMatchObject({
      type: 'user.updated',
      data: { user: { document_id: user.id, name: 'Refused' } },
    })
    expect(await world.call('GET', `${JOBS}/${job}`)).toMatchObject({ status: 'done', queued: 1 })
  })

  it('a reconcile tells of a deletion that the target refused', async () => {
    const { id, path } = await world.makeTarget()
    const user = await world.makeUser()
    await world.t.settle()
    world.receiver.behaveNext({ kind: 'status', status: 400 })
    await world.call('DELETE', `${USERS}/${user.id}`)
    await world.t.settle()
    await start(id, 'reconcile')
    await world.t.settle()
    expect(
      world
        .received(path)
        .filter(({ body }) => body.data.user.document_id === user.id)
        .map(({ body }) => body.type),
    ).toEqual(['user.provisioned', 'user.deprovisioned', 'user.deprovisioned'])
  })

  it('a paused job queues nothing until it is resumed, and a cancelled one never again', async () => {
    const { id, path } = await world.makeTarget()
    const job = await start(id)
    await world.call('POST', `${JOBS}/${job}/pause`)
    await world.t.settle()
    expect(world.received(path)).toEqual([])
    expect((await world.tryCall('POST', `${TARGETS}/${id}/sync`)).body.code).toBe('conflict')
    await world.call('POST', `${JOBS}/${job}/resume`)
    await world.call('POST', `${JOBS}/${job}/cancel`)
    await world.t.settle()
    expect(world.received(path)).toEqual([])
    expect((await world.tryCall('POST', `${JOBS}/${job}/resume`)).status).toBe(409)
    const next = await start(id)
    await world.t.settle()
    expect(await world.call('GET', `${JOBS}/${next}`)).toMatchObject({ status: 'done' })
  })

  it('a job does not begin before a change that did not see the target has ended', async () => {
    const open = await world.t.database.pool.connect()
    try {
      await open.query('begin')
      await open.query(
        `insert into "user" (document_id, email, created_at, updated_at)
         values ('ffffffff-0000-7000-8000-000000000001', 'early@example.com', now(), now())`,
      )
      const { id, path } = await world.makeTarget()
      const job = await start(id)
      await world.t.settle()
      expect(await world.call('GET', `${JOBS}/${job}`)).toMatchObject({ status: 'running', processed: 0 })
      await open.query('commit')
      await world.t.settle()
      const emails = world.received(path).map(({ body }) => body.data.user.email)
      expect(emails.filter((one) => one === 'early@example.com')).toHaveLength(1)
    } finally {
      open.release()
    }
  })

  it('a job does not wait for transactions that change no user', async () => {
    const open = await world.t.database.pool.connect()
    try {
      await open.query('begin; select pg_current_xact_id()')
      const { id } = await world.makeTarget()
      const job = await start(id)
      await world.t.settle()
      expect(await world.call('GET', `${JOBS}/${job}`)).toMatchObject({ status: 'done' })
    } finally {
      await open.query('rollback')
      open.release()
    }
  })

  it('a job of a target that is inactive is refused, and the job of a deleted target ends', async () => {
    const { id } = await world.makeTarget()
    const job = await start(id)
    await world.call('DELETE', `${TARGETS}/${id}`)
    expect(await world.call('GET', `${JOBS}/${job}`)).toMatchObject({ status: 'cancelled' })
    const other = await world.makeTarget()
    await world.call('PATCH', `${TARGETS}/${other.id}/active`, { is_actived: false })
    const refused = await world.tryCall('POST', `${TARGETS}/${other.id}/sync`)
    expect([refused.status, refused.body.code]).toEqual([409, 'target_inactive'])
  })
})

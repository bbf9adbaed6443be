import { expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/harness/database/database.ts'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import type { SweepContext } from '../postgres/sweep.ts'
import { removeWorker, renewLease, workerSweep } from './worker.store.ts'

test('a worker is forgotten an hour after its lease ended, unless one of its claims is still to be taken back', async () => {
  await using database = await createTestDatabase()
  const now = new Date(buildManualClock().now())
  const ended = (agoMs: number) => new Date(now.getTime() - agoMs)
  await database.pool.query(
    `insert into delivery_worker (worker_id, lease_until) values ('idle', $1), ('recent', $2), ('alive', $3),
       ('webhook', $1), ('message', $1), ('stream', $1)`,
    [ended(3_600_001), ended(3_600_000), ended(-10_000)],
  )
  const client = await database.pool.connect()
  await client.query(`begin; set local session_replication_role = replica;
    insert into webhook_dispatch_open (document_id, webhook, event_id, event, status, attempts, is_test, attempt_trigger,
        lease_owner, fence, created_at, updated_at)
      values (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'a.b', 'pending', 1, false, 'schedule', 'webhook', 1,
        now(), now());
    insert into realtime_message_open (document_id, account, event, lease_owner, created_at, updated_at)
      values (gen_random_uuid(), gen_random_uuid(), 'a.b', 'message', now(), now());
    insert into provisioning_stream (target, user_id, position, waiting, lease_owner, claimed, claimed_at)
      values (gen_random_uuid(), gen_random_uuid(), 1, 1, 'stream', gen_random_uuid(), now());
    commit`)
  client.release()

  expect(await workerSweep.run({ db: database.db, now } as SweepContext)).toEqual([1])
  const { rows } = await database.pool.query('select worker_id from delivery_worker order by worker_id')
  expect(rows.map((row) => row.worker_id)).toEqual(['alive', 'message', 'recent', 'stream', 'webhook'])
})

/** The key of the lock of a worker, and the same bits as two keys, which are another lock. */
const KEY = 'hashtextextended($1, 0)'
const TWO_KEYS = `(${KEY} >> 32)::int, (((${KEY} & 4294967295) # 2147483648) - 2147483648)::int`

/** A connection with the lock of a worker, as its process holds it. Returns what ends both. */
async function holdLock({ pool }: TestDatabase, worker: string, key = KEY): Promise<() => void> {
  const client = await pool.connect()
  await client.query(`select pg_advisory_lock_shared(${key})`, [worker])
  return () => client.release(true)
}

test('a renewal tells which other workers have lost their lease, and which their own lock in this database', async () => {
  await using database = await createTestDatabase()
  await using elsewhere = await createTestDatabase()
  const now = new Date(buildManualClock().now())
  const [until, later] = [new Date(now.getTime() + 10_000), new Date(now.getTime() + 1)]
  await database.pool.query(
    `insert into delivery_worker (worker_id, lease_until, has_lock) values ('alive', $2, true), ('expired', $1, false),
       ('lost', $2, true), ('without', $2, false)`,
    [now, later],
  )
  using held = new DisposableStack()
  held.defer(await holdLock(database, 'alive'))
  held.defer(await holdLock(elsewhere, 'lost'))
  held.defer(await holdLock(database, 'lost', TWO_KEYS))
  held.defer(await holdLock(database, 'something else'))
  const renew = async (hasLock = true) => {
    const { others } = await renewLease(database.db, { workerId: 'own', until, hasLock, now })
    return Object.fromEntries(others.map(({ workerId, ...rest }) => [workerId, rest]))
  }
  expect(await renew()).toEqual({
    alive: { isExpired: false, isLockLost: false },
    expired: { isExpired: true, isLockLost: false },
    lost: { isExpired: false, isLockLost: true },
    without: { isExpired: false, isLockLost: false },
  })
  const readOwn = async () =>
    (await database.pool.query(`select lease_until, has_lock from delivery_worker where worker_id = 'own'`)).rows
  // What the worker says of its lock counts only while the server has it.
  expect(await readOwn()).toEqual([{ lease_until: until, has_lock: false }])
  held.defer(await holdLock(database, 'own'))
  await renew()
  expect(await readOwn()).toEqual([{ lease_until: until, has_lock: true }])
  await renew(false)
  expect(await readOwn()).toEqual([{ lease_until: until, has_lock: false }])

  await removeWorker(database.db, { workerId: 'lost' })
  const { others } = await renewLease(database.db, { workerId: 'own', until, hasLock: false, now })
  expect(others.map(({ workerId }) => workerId).sort()).toEqual(['alive', 'expired', 'without'])
})

test('a worker that is alone is told the time of the database', async () => {
  await using database = await createTestDatabase()
  const now = new Date(buildManualClock().now())
  const readTime = async () =>
    (await database.pool.query('select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms')).rows[0].ms
  const before = await readTime()
  const { others, databaseMs } = await renewLease(database.db, { workerId: 'own', until: now, hasLock: false, now })
  expect(others).toEqual([])
  expect(databaseMs).toBeGreaterThanOrEqual(before)
  expect(databaseMs).toBeLessThanOrEqual(await readTime())
})

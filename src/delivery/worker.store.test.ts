import { expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness/database/database.ts'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import type { SweepContext } from '../postgres/sweep.ts'
import { workerSweep } from './worker.store.ts'

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

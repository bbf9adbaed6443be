import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openWatched } from '../../../test/harness/plan/explain.ts'
import { expectFewReads } from '../../../test/harness/plan/plan-reads.ts'
import { INDEX_PLANS } from '../../postgres/statement/database.ts'
import { provisioningJobs } from '../../provisioning/job/job.store.ts'
import { replayJobs } from '../../webhook/replay/replay-job.store.ts'
import type { ReplayJobId } from '../../webhook/replay/replay-job-record.ts'

/** Jobs of each state; a look of a runner finds 100 at most. */
const ENDED = 2_000
const RUNNING = 3

const fill = (table: string, columns: string, values: string) => `
  insert into ${table} (document_id, status, total, created_at, updated_at, ended_at, ${columns})
  select gen_random_uuid(), case when n <= ${RUNNING} then 'running' else (array['done', 'cancelled'])[1 + n % 2] end, 0,
    x.at, x.at, case when n > ${RUNNING} then x.at end, ${values}
  from generate_series(1, ${ENDED + RUNNING}) n, lateral (select now() - n * interval '1 minute' as at) x`

test.each([
  ['replay_job', replayJobs.listRunning, fill('replay_job', 'filters, confirm_duplicate', `'{}', false`)],
  [
    'provisioning_job',
    provisioningJobs.listRunning,
    fill('provisioning_job', 'target, kind', `gen_random_uuid(), 'sync'`),
  ],
])('a look for running jobs of %s reads those that run, beside any number that ended', async (table, list, rows) => {
  await using database = await createTestDatabase({ isOwn: true })
  await database.pool.query(`begin; set local session_replication_role = replica; ${rows}; commit`)
  await using watched = openWatched(database, INDEX_PLANS)
  const found = await expectFewReads(watched, { most: RUNNING }, async (db): Promise<string[]> => list(db, null))
  const { rows: running } = await database.pool.query(
    `select document_id from ${table} where status = 'running' order by document_id`,
  )
  const ids = running.map((row) => row.document_id)
  expect(found).toEqual(ids)
  expect(await list(database.db, ids[0])).toEqual(ids.slice(1))
  expect(await list(database.db, ids.at(-1))).toEqual([])
})

test('a job moves from one of the named states alone, clears its failures and leaves other jobs as they are', async () => {
  await using database = await createTestDatabase()
  const { db, pool } = database
  const [created, now] = [new Date('2026-09-11T12:00:00.000Z'), new Date('2026-09-11T13:00:00.000Z')]
  const ids: ReplayJobId[] = []
  for (let count = 0; count < 2; count += 1) {
    const { rows } = await pool.query(
      `insert into replay_job (document_id, status, total, failures, last_error, created_at, updated_at, filters, confirm_duplicate)
       values (gen_random_uuid(), 'paused', 0, 3, 'a fault', $1, $1, '{}', false) returning document_id`,
      [created],
    )
    ids.push(rows[0].document_id)
  }
  const [job, other] = ids as [ReplayJobId, ReplayJobId]
  const step = { from: ['paused', 'failed'] as const, to: 'cancelled' as const, endedAt: now, now }
  const read = async () => (await pool.query('select * from replay_job order by document_id <> $1', [job])).rows
  for (const id of ids) expect(await replayJobs.find(db, id)).toMatchObject({ id, status: 'paused' })
  expect(await replayJobs.move(db, job, { ...step, from: ['running'] })).toBeUndefined()
  expect(await replayJobs.move(db, job, step)).toMatchObject({ id: job, status: 'cancelled' })
  expect(await read()).toMatchObject([
    { document_id: job, status: 'cancelled', failures: 0, last_error: null, ended_at: now, updated_at: now },
    { document_id: other, status: 'paused', failures: 3, last_error: 'a fault', ended_at: null, updated_at: created },
  ])
  const unknown = '01990000-0000-7000-8000-000000000000' as ReplayJobId
  expect(await replayJobs.find(db, unknown)).toBeUndefined()
  await expect(replayJobs.change(db, unknown, { failures: 1 }, now)).rejects.toThrow('no row of replay_job has the id')
})

import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openWatched } from '../../../test/harness/plan/explain.ts'
import { expectFewReads } from '../../../test/harness/plan/plan-reads.ts'
import { INDEX_PLANS } from '../../postgres/statement/database.ts'
import { provisioningJobs } from '../../provisioning/job/job.store.ts'
import { replayJobs } from '../../webhook/replay/replay-job.store.ts'

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
  const found = await expectFewReads(watched, { most: RUNNING }, async (db): Promise<string[]> => list(db))
  const { rows: running } = await database.pool.query(
    `select document_id from ${table} where status = 'running' order by created_at`,
  )
  expect(found).toEqual(running.map((row) => row.document_id))
})

import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { replayJobs } from '../../webhook/replay/replay-job.store.ts'
import type { ReplayJobId } from '../../webhook/replay/replay-job-record.ts'
import { moveJob } from './job-move.ts'
import type { JobMove } from './job-state.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')

let id: ReplayJobId
const database = await openForFile(createTestDatabase())
beforeEach(async () => {
  const { rows } = await database.pool.query(
    `insert into replay_job (document_id, status, total, created_at, updated_at, filters, confirm_duplicate)
     values (gen_random_uuid(), 'running', 0, now(), now(), '{}', false) returning document_id`,
  )
  id = rows[0].document_id
})

const load = async (db: Database, of: string) => (await replayJobs.find(db, of))!
const move = (name: JobMove, loading = load) =>
  moveJob({ table: replayJobs, load: loading, noun: 'replay job' }, database.db, id, { move: name, now: NOW })

test('a job is paused and resumed without an end, and has one once it is cancelled', async () => {
  expect(await move('pause')).toMatchObject({ id, status: 'paused', endedAt: null })
  expect(await move('resume')).toMatchObject({ status: 'running', endedAt: null })
  expect(await move('cancel')).toMatchObject({ status: 'cancelled', endedAt: NOW, updatedAt: NOW })
  await expect(move('resume')).rejects.toMatchObject({
    code: 'conflict',
    detail: 'The replay job is cancelled; resume needs one that is paused or failed.',
  })
})

test('a job whose state another process changed to one that allows the move meanwhile is moved', async () => {
  const moved = await move('resume', async (db, of) => {
    await replayJobs.move(db, of, { from: ['running'], to: 'paused', endedAt: null, now: NOW })
    return load(db, of)
  })
  expect(moved).toMatchObject({ id, status: 'running' })
  expect(await load(database.db, id)).toMatchObject({ status: 'running' })
})

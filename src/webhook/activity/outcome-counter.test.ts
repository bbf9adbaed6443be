import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildOutcomeCounter } from './outcome-counter.ts'

test('all batches are added up, however many there are, until the counter is stopped', async () => {
  await using database = await createTestDatabase()
  const counter = buildOutcomeCounter({
    ...{ db: database.db, clock: buildManualClock(), logger: pino({ level: 'silent' }) },
  })
  const add = (count: number) =>
    database.pool.query(
      `insert into webhook_outcome_batch (settled_at, webhooks, owners, statuses, causes, durations, events, counts)
       select now(), '{}', '{}', '{}', '{}', '{}', '{}', '{}' from generate_series(1, $1::int)`,
      [count],
    )
  const left = async () => (await database.pool.query('select from webhook_outcome_batch')).rowCount
  await add(1_001)
  await counter.count()
  expect(await left()).toBe(0)
  await add(2)
  counter.stop()
  await counter.count()
  expect(await left()).toBe(2)
})

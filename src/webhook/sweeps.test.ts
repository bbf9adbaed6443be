import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness/database/database.ts'
import { webhookSweeps } from './sweeps.ts'

const HOUR_MS = 3_600_000

test('sums of breakdowns are of five minutes for 65 minutes, of hours for 25 hours, and of days for 31 days', async () => {
  await using database = await createTestDatabase()
  const { db, pool } = database
  const sweep = webhookSweeps.find(({ counts }) => counts[0] === 'breakdowns')
  const at = new Date('2026-09-11T00:00:00.000Z')
  await pool.query(
    `insert into webhook_breakdown (subject, at, width, measure, attempts, failed)
     values ($1, $2, 'five_minutes', 'event:a', 1, 0)`,
    [randomUUID(), at],
  )
  const left = async (afterMs: number) => {
    await sweep?.run({ db, now: new Date(at.getTime() + afterMs), limit: 1_000 } as never)
    return (await pool.query('select width from webhook_breakdown')).rows.map(({ width }) => width)
  }
  expect(await left(65 * 60_000)).toEqual(['five_minutes'])
  expect(await left(65 * 60_000 + 1)).toEqual(['hour'])
  expect(await left(25 * HOUR_MS)).toEqual(['hour'])
  expect(await left(25 * HOUR_MS + 1)).toEqual(['day'])
  expect(await left(31 * 24 * HOUR_MS)).toEqual(['day'])
  expect(await left(31 * 24 * HOUR_MS + 1)).toEqual([])
})

import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  cameInto,
  countChanges,
  findSettlingShard,
  findShard,
  foldOldMinutes,
  leftFrom,
  REMOVAL_SHARD,
  readTotals,
} from './delivery-count.store.ts'

const MINUTE = '2030-01-01T12:00:00.000Z'
const at = (seconds: number) => new Date(Date.parse(MINUTE) + seconds * 1_000)

/** Counts that rows which were made at these seconds came into, or left, a status. */
async function count(db: Database, seconds: readonly number[], change: string, shard = 1): Promise<void> {
  const rows = sql`select created_at from unnest(${seconds.map(at)}::timestamptz[]) as x (created_at)`
  await sql`with moved as (${rows}) ${sql.raw(countChanges([change], String(shard)))}`.execute(db)
}

const listCounts = async (db: Database) =>
  (
    await db
      .selectFrom('webhook_delivery_minute')
      .select(['minute', 'status', 'shard', 'came', 'deliveries'])
      .where((eb) => eb.or([eb('came', '<>', 0), eb('deliveries', '<>', 0)]))
      .orderBy('minute')
      .orderBy('status')
      .orderBy('shard')
      .execute()
  ).map(({ minute, status, shard, came, deliveries }) => [
    minute.toISOString() === new Date(0).toISOString() ? 'epoch' : (minute.getTime() - Date.parse(MINUTE)) / 1_000,
    ...[status, shard, Number(came), Number(deliveries)],
  ])

test('what routes, what settles and what removes count on shards of their own, whichever worker it is', () => {
  const workers = Array.from({ length: 500 }, (_, n) => `worker-${n}`)
  const routing = new Set(workers.map(findShard))
  const settling = new Set(workers.map(findSettlingShard))
  expect([routing.size, Math.min(...routing), Math.max(...routing)]).toEqual([64, 0, 63])
  expect([settling.size, Math.min(...settling), Math.max(...settling)]).toEqual([64, 64, 127])
  expect(REMOVAL_SHARD).toBe(128)
  expect(findShard('worker-1')).toBe(findShard('worker-1'))
})

test('rows count in the minute of their creation, each change beside what was counted, and nothing where nothing changed', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await count(db, [0, 59, 60], cameInto('moved', `'pending'`))
  await count(db, [1], cameInto('moved', `'pending'`))
  await count(db, [1], cameInto('moved', `'pending'`), 2)
  expect(await listCounts(db)).toEqual([
    [0, 'pending', 1, 3, 3],
    [0, 'pending', 2, 1, 1],
    [60, 'pending', 1, 1, 1],
  ])
  // One that leaves a status came into it all the same.
  await count(db, [0, 1], leftFrom('moved', `'pending'`))
  await count(db, [60], leftFrom('moved', `'cancelled'`))
  expect(await listCounts(db)).toEqual([
    [0, 'pending', 1, 3, 1],
    [0, 'pending', 2, 1, 1],
    [60, 'cancelled', 1, 0, -1],
    [60, 'pending', 1, 1, 1],
  ])
  await count(db, [120], `select created_at, 'pending' as status, 0 as came, 0 as deliveries from moved`)
  const { rows } = await sql`select from webhook_delivery_minute where minute = ${at(120)}`.execute(db)
  expect(rows).toEqual([])
})

test('minutes before an instant are added up, that minute and what was added up stay, and the totals do not change', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await count(db, [0, 1, 60, 120], cameInto('moved', `'success'`))
  await count(db, [0], cameInto('moved', `'success'`), 2)
  const totals = await readTotals(db)
  expect(totals).toEqual(new Map([['success', 5]]))
  expect(await foldOldMinutes(db, { before: at(60) })).toBe(2)
  expect(await listCounts(db)).toEqual([
    ['epoch', 'success', 1, 2, 0],
    ['epoch', 'success', 2, 1, 0],
    [60, 'success', 1, 1, 1],
    [120, 'success', 1, 1, 1],
  ])
  expect(await foldOldMinutes(db, { before: at(61) })).toBe(1)
  expect(await foldOldMinutes(db, { before: at(61) })).toBe(0)
  expect((await listCounts(db)).slice(0, 2)).toEqual([
    ['epoch', 'success', 1, 3, 0],
    ['epoch', 'success', 2, 1, 0],
  ])
  expect(await readTotals(db)).toEqual(totals)
})

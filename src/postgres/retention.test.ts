import { expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness/database/database.ts'
import { deletionOfOld } from './retention.ts'
import { inTransaction } from './statement/database.ts'

const deleteOld = deletionOfOld('process_skew', { key: 'process', time: 'seen_at' })

test('rows from before an instant are deleted up to a limit, the oldest first, and none that is locked', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const at = (ms: number) => new Date(Date.UTC(2026, 8, 11) + ms)
  for (const ms of [2, 1, 4, 3])
    await db
      .insertInto('process_skew')
      .values({ process: `of ${ms}`, skew_ms: 0, seen_at: at(ms) })
      .execute()
  const list = async () =>
    (await db.selectFrom('process_skew').select('process').orderBy('process').execute()).map(({ process }) => process)
  expect(await deleteOld(db, at(4), 1)).toBe(1)
  expect(await list()).toEqual(['of 2', 'of 3', 'of 4'])
  await inTransaction(db, async (tx) => {
    await tx.selectFrom('process_skew').select('process').where('process', '=', 'of 2').forUpdate().execute()
    expect(await deleteOld(db, at(4), 5)).toBe(1)
  })
  expect(await list()).toEqual(['of 2', 'of 4'])
  expect([await deleteOld(db, at(4), 5), await deleteOld(db, at(4), 5)]).toEqual([1, 0])
})

test('a further condition keeps rows that are as old', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const and = 'not exists (select from process_skew other where other.skew_ms = r.skew_ms + 1)'
  const deleteLast = deletionOfOld('process_skew', { key: 'process', time: 'seen_at', and })
  const seen_at = new Date(0)
  for (const skew_ms of [1, 2, 3])
    await db
      .insertInto('process_skew')
      .values({ process: `of ${skew_ms}`, skew_ms, seen_at })
      .execute()
  expect(await deleteLast(db, new Date(1), 5)).toBe(1)
  expect(
    (await db.selectFrom('process_skew').select('process').orderBy('process').execute()).map((row) => row.process),
  ).toEqual([...['of 1', 'of 2']])
})

import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { deleteEndedGrants } from './exchange.store.ts'

test('grants that ended before an instant are forgotten in batches, the oldest first, and no others', async () => {
  await using database = await createTestDatabase()
  const now = new Date('2026-09-11T12:00:00.000Z')
  for (const ms of [-1, -3, -2, 0])
    await database.pool.query('insert into oauth_ended_grant (grant_id, ended_at) values ($1, $2)', [
      `${ms}`,
      new Date(now.getTime() + ms),
    ])
  const read = async () =>
    (await database.pool.query('select grant_id from oauth_ended_grant order by ended_at')).rows.map(
      (row) => row.grant_id,
    )
  expect(await deleteEndedGrants(database.db, now, 2)).toBe(2)
  expect(await read()).toEqual(['-1', '0'])
  expect(await deleteEndedGrants(database.db, now, 2)).toBe(1)
  expect(await read()).toEqual(['0'])
})

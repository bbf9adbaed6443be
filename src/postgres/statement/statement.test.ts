import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { rowStatement, soleRowStatement, statement } from './statement.ts'

const SERIES = 'select n from generate_series(1, $last::int) n'

test('a statement returns its rows, or what is read of each', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  expect(await statement<{ n: number }, { last: number }>(SERIES)(db, { last: 2 })).toEqual([{ n: 1 }, { n: 2 }])
  const read = statement<{ n: number }, { last: number }, string>(SERIES, ({ n }) => `${n}`)
  expect(await read(db, { last: 2 })).toEqual(['1', '2'])
})

test('a statement of one row returns the first, and only that of a row that must exist rejects without one', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const find = rowStatement<{ n: number }, { last: number }, number>(SERIES, ({ n }) => n)
  expect([await find(db, { last: 2 }), await find(db, { last: 0 })]).toEqual([1, undefined])
  const take = soleRowStatement<{ n: number }, { last: number }>(SERIES)
  expect(await take(db, { last: 1 })).toEqual({ n: 1 })
  await expect(take(db, { last: 0 })).rejects.toThrow('returned none: select n from generate_series')
})

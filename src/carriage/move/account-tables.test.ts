import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { DERIVED, DRAINED, LEDGER, OF_DATABASE, OF_HOME, STATE } from './account-tables.ts'

test('every table of the schema is classified once', async () => {
  await using database = await createTestDatabase()
  const { rows } = await database.pool.query(
    `select relname::text as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  )
  const copied = new Set([...LEDGER, ...STATE].map(({ table }) => table))
  const known = [...copied, ...DERIVED, ...DRAINED, ...OF_HOME, ...OF_DATABASE]
  expect(known.sort()).toEqual(rows.map(({ name }) => name).sort())
})

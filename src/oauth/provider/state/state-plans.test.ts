import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { openDatabase } from '../../../postgres/statement/database.ts'
import { writeStateBatch } from './state-batch.store.ts'
import { loadBrowser, loadTokens } from './state-load.store.ts'

const NOBODY = '00000000-0000-7000-8000-000000000001'

test('the statements of a request keep their plans, and look rows up by their whole keys', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const { db, pool, close } = openDatabase({
    connectionString: database.connectionString,
    size: 1,
    applicationName: 'plans',
    onError: () => {},
  })
  const now = new Date()
  const idHash = randomBytes(32)
  const ids = { sessionId: NOBODY, userId: NOBODY, clientId: NOBODY }
  for (let count = 0; count < 12; count += 1) {
    await loadTokens(db, { models: ['AccessToken', 'RefreshToken'], idHash, now })
    await loadBrowser(db, { idHash, ...ids, now })
    await writeStateBatch(db, {
      spent: { model: 'RefreshToken', idHash, consumedBy: null, answer: null },
      rows: [],
      browser: NOBODY,
      now,
    })
  }
  const { rows } = await pool.query<{ name: string; statement: string; custom: number; generic: number }>(`
    select name, statement, custom_plans::int as custom, generic_plans::int as generic from pg_prepared_statements
    where statement like '%oauth_state%'`)
  expect(rows).toHaveLength(3)
  for (const { custom, generic } of rows) expect([custom, generic]).toEqual([5, 7])
  const { name } = rows.find(({ statement }) => statement.includes('from oauth_state t')) ?? { name: '' }
  // The values in the order in which the names stand in the text.
  const plan = await pool.query(`explain execute "${name}"(now(), 'AccessToken', 'RefreshToken', '\\x00')`)
  const text = plan.rows.map((row) => row['QUERY PLAN']).join('\n')
  expect(text).toMatch(/Index Cond: \(\(model = 'Grant'::text\) AND \(id_hash = /)
  expect(text).toContain('oauth_state_uid_model_idx')
  await close()
})

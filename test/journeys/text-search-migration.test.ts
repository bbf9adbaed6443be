import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { migrate } from '../../src/postgres/migration/migrate.ts'
import { createTestDatabase } from '../harness/database/database.ts'

const BEFORE = '0010_contract'
const MIGRATION = join(import.meta.dirname, '../../migrations/0011_text_search.sql')

test('a role that may not create the extension for like migrates without its indexes, one that may gets all of them', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  await migrate(database.connectionString, { upTo: BEFORE })
  const [text = ''] = /do \$\$[\s\S]*\$\$;/.exec(await readFile(MIGRATION, 'utf8')) ?? []
  const listIndexes = async () => {
    const { rows } = await database.pool.query(
      `select indexname from pg_indexes where indexname like '%\\_parts\\_idx'`,
    )
    return rows.length
  }
  const client = await database.pool.connect()
  try {
    await client.query('begin; create role like_test nologin; set local role like_test')
    await client.query(text)
    const { rows } = await client.query(`select 1 from pg_extension where extname = 'pg_trgm'`)
    expect(rows).toEqual([])
    await client.query('rollback')
  } finally {
    client.release()
  }
  expect(await listIndexes()).toBe(0)
  await migrate(database.connectionString)
  expect(await listIndexes()).toBe(text.match(/create index/g)?.length)
})

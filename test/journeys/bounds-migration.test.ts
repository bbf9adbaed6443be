import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { migrate } from '../../src/postgres/migration/migrate.ts'
import { createTestDatabase } from '../harness/database/database.ts'

const BEFORE = '0006_front_door'

test('the migration limits the expiry of a key to the year 9999, and no later one can be stored', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  await migrate(database.connectionString, { upTo: BEFORE })
  const user = randomUUID()
  await database.pool.query(
    `insert into "user" (document_id, email, created_at, updated_at) values ($1, 'a@example.com', now(), now())`,
    [user],
  )
  const insert = (expiresAt: string | null) =>
    database.pool.query(
      `insert into api_key (document_id, "user", name, token_hash, hint, permissions, expires_at, created_at, updated_at)
       values (gen_random_uuid(), $1, 'key', sha256($2::bytea), 'sbx_', '{}', $3, now(), now())`,
      [user, randomUUID(), expiresAt],
    )
  await insert('10000-01-01T23:58:59Z')
  await insert('2027-01-01T00:00:00Z')
  await insert(null)
  await migrate(database.connectionString)
  const { rows } = await database.pool.query<{ expires_at: Date | null }>(
    'select expires_at from api_key order by expires_at nulls last',
  )
  expect(rows.map((row) => row.expires_at?.toISOString())).toEqual([
    '2027-01-01T00:00:00.000Z',
    '9999-12-31T23:59:59.999Z',
    undefined,
  ])
  await expect(insert('10000-01-01T00:00:00Z')).rejects.toThrow('api_key_expires_range')
  await expect(insert('1969-12-31T23:59:59Z')).rejects.toThrow('api_key_expires_range')
})

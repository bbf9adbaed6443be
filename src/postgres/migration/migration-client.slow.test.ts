import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { startDatabaseProxy } from '../../../test/harness/fakes/proxy.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { openMigrationClient } from './migration-client.ts'

const database = await openForFile(createTestDatabase({ content: 'empty' }))

const countAsking = async () => {
  const { rows } = await database.pool.query(
    `select count(*)::int as count from pg_stat_activity
     where datname = current_database() and application_name = 'signalbox migrate'`,
  )
  return rows[0].count
}

test('a migration that takes longer than the silence limit goes on while the server works on it', async () => {
  const holder = await database.pool.connect()
  await holder.query('select pg_advisory_lock(1)')
  const { client, end } = await openMigrationClient(database.connectionString, { silenceMs: 100 })
  const work = client.query('select pg_advisory_lock(1), 1 as one')
  await waitFor('a look by a second connection', async () => (await countAsking()) >= 2)
  await holder.query('select pg_advisory_unlock(1)')
  holder.release()
  expect((await work).rows[0].one).toBe(1)
  await end()
})

test('a migration whose connection is dead fails soon after the server has ended its statement, and does not wait for ever', async () => {
  await using proxy = await startDatabaseProxy(database.connectionString)
  const { client, end } = await openMigrationClient(proxy.connectionString, { silenceMs: 100 })
  const lost = client.query('select pg_sleep(1)').catch((error: unknown) => error)
  await waitFor('the statement', async () => (await countAsking()) >= 1)
  proxy.swallowOpen()
  expect(await lost).toMatchObject({ code: 'ETIMEDOUT' })
  await end()
})

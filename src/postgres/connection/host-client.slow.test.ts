import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { startDatabaseProxy } from '../../../test/harness/fakes/proxy.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { openDatabase } from '../statement/database.ts'
import { findPrimaryChoice, HostClient } from './host-client.ts'

const database = await openForFile(createTestDatabase({ content: 'empty' }))

/** The connection string of the database with these hosts, in their order. */
function nameHosts(hosts: readonly string[], { user, password }: { user?: string; password?: string } = {}): string {
  const url = new URL(database.connectionString)
  return `postgres://${user ?? url.username}:${password ?? url.password}@${hosts.join(',')}${url.pathname}`
}

const server = () => new URL(database.connectionString).host
const DEAD = '127.0.0.1:1'

async function countWatches(): Promise<number> {
  const { rows } = await database.pool.query(
    "select from pg_stat_activity where application_name = 'signalbox primary' and datname = current_database()",
  )
  return rows.length
}

test.each([undefined, 'postgres://user:pass@one/name', 'postgres://user:a,b@one/name?options=-c%20x=1,2'])(
  'with one host nothing is chosen or watched: %s',
  (connectionString) => {
    expect(findPrimaryChoice(connectionString)).toBeUndefined()
  },
)

describe('a client with several hosts', () => {
  test('connects to the one that answers, and all clients of the string share its choice', async () => {
    const connectionString = nameHosts([DEAD, server()])
    const clients = [new HostClient({ connectionString }), new HostClient({ connectionString })]
    await Promise.all(clients.map((client) => client.connect()))
    const { rows } = await clients[0]!.query('select 1 as one')
    expect(rows).toEqual([{ one: 1 }])
    expect(findPrimaryChoice(connectionString)).toBe(findPrimaryChoice(connectionString))
    expect(await countWatches()).toBe(1)
    await Promise.all(clients.map((client) => client.end()))
    await waitFor('the end of the watch', async () => (await countWatches()) === 0)
  })

  test('reports why none of them lets it in', async () => {
    const down = new HostClient({ connectionString: nameHosts([DEAD, '127.0.0.1:2']) })
    await expect(down.connect()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    const refused = new HostClient({ connectionString: nameHosts([server(), server()], { password: 'wrong' }) })
    await expect(refused.connect()).rejects.toMatchObject({ code: expect.stringMatching(/^28/) })
    expect(await countWatches()).toBe(0)
  })

  test('that is ended while the primary is looked for opens no connection', async () => {
    const client = new HostClient({ connectionString: nameHosts([server(), DEAD]), application_name: 'ended early' })
    const connecting = client.connect()
    await client.end()
    await expect(connecting).rejects.toThrow('Connection terminated')
    const { rows } = await database.pool.query("select from pg_stat_activity where application_name = 'ended early'")
    expect(rows).toEqual([])
  })

  test('in a pool: it is opened again after a loss, and the end of the pool ends the watch', async () => {
    await using proxy = await startDatabaseProxy(database.connectionString)
    const connectionString = nameHosts([DEAD, new URL(proxy.connectionString).host])
    const pool = openDatabase({ connectionString, size: 2, applicationName: 'host test', onError: () => {} })
    const ask = () => sql`select 1`.execute(pool.db)
    await ask()
    proxy.drop()
    await waitFor('another connection', () => ask().catch(() => undefined))
    proxy.set('refusing')
    await expect(ask()).rejects.toThrow()
    proxy.set('open')
    await waitFor('the primary', () => ask().catch(() => undefined))
    await pool.close()
    await waitFor('the end of the watch', async () => (await countWatches()) === 0)
  })
})

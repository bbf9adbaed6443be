import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { type DatabasePool, openDatabase, REQUEST_LOCK_LIMIT_MS } from '../../src/postgres/database.ts'
import { TEMPLATE_DATABASE, withDatabaseName } from './database-url.ts'

/** A database of one test's own. Closed and dropped when it goes out of scope (`await using`). */
export interface TestDatabase extends DatabasePool, AsyncDisposable {
  connectionString: string
}

/** Clones the migrated template; `empty: true` gives a database without any table. */
export async function createTestDatabase(options: { empty?: boolean; poolSize?: number } = {}): Promise<TestDatabase> {
  const serverUrl = inject('databaseServerUrl')
  const name = `test_${randomBytes(8).toString('hex')}`
  await runOnServer(serverUrl, `create database ${name} template ${options.empty ? 'template0' : TEMPLATE_DATABASE}`)
  const connectionString = withDatabaseName(serverUrl, name)
  const opened = openDatabase({
    connectionString,
    size: options.poolSize ?? 10,
    applicationName: 'signalbox test',
    lockTimeoutMs: REQUEST_LOCK_LIMIT_MS,
    onError: () => {},
  })
  return {
    ...opened,
    connectionString,
    [Symbol.asyncDispose]: async () => {
      await opened.close()
      await runOnServer(serverUrl, `drop database ${name} with (force)`)
    },
  }
}

async function runOnServer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import type { UserId } from '../../src/id.ts'
import { type DatabasePool, openDatabase, REQUEST_LOCK_LIMIT_MS } from '../../src/postgres/database.ts'
import { MIGRATED_TEMPLATE, PREPARED_TEMPLATE, withDatabaseName } from './database-url.ts'

/** A database of one test. Closed and dropped at the end of its scope (`await using`). */
export interface TestDatabase extends DatabasePool, AsyncDisposable {
  connectionString: string
  /** The administrator of a prepared database. */
  administrator?: UserId | undefined
}

/**
 * The initial content of a test database: `empty`, no table; `migrated`, every table, without rows; `prepared`, the rows
 * of a service start (catalogue, permissions, system roles) and an administrator.
 */
export type DatabaseContent = 'empty' | 'migrated' | 'prepared'

const TEMPLATES = { empty: 'template0', migrated: MIGRATED_TEMPLATE, prepared: PREPARED_TEMPLATE }

/** Creates a database for one test by cloning a template. */
export async function createTestDatabase(
  options: { content?: DatabaseContent; poolSize?: number } = {},
): Promise<TestDatabase> {
  const { content = 'migrated', poolSize = 10 } = options
  const serverUrl = inject('databaseServerUrl')
  const name = `test_${randomBytes(8).toString('hex')}`
  // Copying the files of the template takes a third of the work of writing every page to the log.
  await runOnServer(serverUrl, `create database ${name} template ${TEMPLATES[content]} strategy file_copy`)
  const connectionString = withDatabaseName(serverUrl, name)
  const opened = openDatabase({
    connectionString,
    size: poolSize,
    applicationName: 'signalbox test',
    lockTimeoutMs: REQUEST_LOCK_LIMIT_MS,
    onError: () => {},
  })
  return {
    ...opened,
    connectionString,
    administrator: content === 'prepared' ? inject('administrator') : undefined,
    [Symbol.asyncDispose]: async () => {
      await opened.close()
      await runOnServer(serverUrl, `drop database ${name} with (force)`)
    },
  }
}

let administration: Promise<pg.Client> | undefined

/** Runs a statement on the one connection that this process keeps for it: opening one costs as much as a small statement. */
async function runOnServer(url: string, statement: string): Promise<void> {
  administration ??= connect(url)
  await (await administration).query(statement)
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {
    administration = undefined
  })
  await client.connect()
  // A process of tests does not wait for this connection to end.
  ;(client as unknown as { unref(): void }).unref()
  return client
}

import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import type { UserId } from '../../src/id.ts'
import { type DatabasePool, openDatabase, REQUEST_LOCK_LIMIT_MS } from '../../src/postgres/database.ts'
import { MIGRATED_TEMPLATE, PREPARED_TEMPLATE, withDatabaseName } from './database-url.ts'
import { openRestorable, type RestorableDatabase } from './restorable-database.ts'

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

/** Databases that tests of this process left as they were, by their content. */
const resting = new Map<DatabaseContent, RestorableDatabase[]>()

/**
 * Gives a database for one test: one that an earlier test left as a new one, else a clone of a template. A clone takes
 * more work than most tests, because PostgreSQL copies and removes a thousand files for it.
 */
export async function createTestDatabase(
  options: { content?: DatabaseContent; poolSize?: number } = {},
): Promise<TestDatabase> {
  const { content = 'migrated', poolSize = 10 } = options
  const taken = resting.get(content)?.pop() ?? (await cloneTemplate(content))
  const { connectionString } = taken
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
      // Kysely does not end a pool that it never used.
      if (!opened.pool.ended) await opened.pool.end()
      if (content !== 'empty' && (await taken.restore())) resting.set(content, [...(resting.get(content) ?? []), taken])
      else await dropDatabase(taken)
    },
  }
}

async function cloneTemplate(content: DatabaseContent): Promise<RestorableDatabase> {
  const serverUrl = inject('databaseServerUrl')
  const name = `test_${randomBytes(8).toString('hex')}`
  // Copying the files of the template takes a third of the work of writing every page to the log.
  await runOnServer(serverUrl, `create database ${name} template ${TEMPLATES[content]} strategy file_copy`)
  const connectionString = withDatabaseName(serverUrl, name)
  if (content !== 'empty') return openRestorable(connectionString)
  return { connectionString, restore: async () => false, close: async () => {} }
}

async function dropDatabase(taken: RestorableDatabase): Promise<void> {
  await taken.close()
  const name = new URL(taken.connectionString).pathname.slice(1)
  await runOnServer(inject('databaseServerUrl'), `drop database ${name} with (force)`)
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

import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import type { UserId } from '../../../src/base/id.ts'
import type { DatabasePool } from '../../../src/postgres/statement/database.ts'
import { nameKeptTemplate, nameTemplate, type TemplateContent, withDatabaseName, withSocket } from './database-url.ts'
import { type KeptPool, openKeptPool } from './kept-pool.ts'
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
export type DatabaseContent = 'empty' | TemplateContent

/** A database that a test left as it found it, with its open connections if they have no trace of the test either. */
interface RestingDatabase {
  restorable: RestorableDatabase
  pool?: KeptPool
}

/** Databases that tests of this process left as they were, by their content. */
const resting = new Map<DatabaseContent, RestingDatabase[]>()

/** The size of the pools that are kept with their database. */
const KEPT_POOL_SIZE = 10

/**
 * Gives a database for one test: one that an earlier test left as a new one, else a clone of a template. A clone takes
 * more work than most tests, because PostgreSQL copies and removes a thousand files for it. Its connections are kept too:
 * the first statements of a new one take more work than those of most tests.
 *
 * With `isOwn` it is a clone that no other test had or gets. Plans need one: they depend on the sizes of files and on
 * statistics, and a restored database has only the rows of a new one.
 */
export async function createTestDatabase(
  options: { content?: DatabaseContent; poolSize?: number; isOwn?: boolean } = {},
): Promise<TestDatabase> {
  const { content = 'migrated', poolSize = KEPT_POOL_SIZE, isOwn = false } = options
  const { restorable, pool: kept }: RestingDatabase = (isOwn ? undefined : resting.get(content)?.pop()) ?? {
    restorable: await cloneTemplate(content, isOwn),
  }
  const isKept = poolSize === KEPT_POOL_SIZE
  if (!isKept) await kept?.close()
  const { connectionString } = restorable
  const pool = (isKept && kept) || openKeptPool(byFastestWay(connectionString), poolSize)
  return {
    ...pool.database,
    connectionString,
    administrator: content === 'prepared' ? inject('administrator') : undefined,
    [Symbol.asyncDispose]: async () => {
      const known = isKept && content !== 'empty' && !isOwn ? await pool.rest() : undefined
      if (!known) await pool.close()
      const isRestored = await restorable.restore(known ?? [])
      if (isRestored) {
        resting.set(content, [...(resting.get(content) ?? []), { restorable, ...(known && { pool }) }])
        return
      }
      if (known) await pool.close()
      await dropDatabase(restorable)
    },
  }
}

const byFastestWay = (url: string) => withSocket(url, inject('databaseSocket'))

async function cloneTemplate(content: DatabaseContent, isOwn: boolean): Promise<RestorableDatabase> {
  const serverUrl = inject('databaseServerUrl')
  const name = `test_${randomBytes(8).toString('hex')}`
  // Copying the files of the template takes a third of the work of writing every page to the log.
  const template = nameSource(serverUrl, content, isOwn)
  await runOnServer(serverUrl, `create database ${name} template "${template}" strategy file_copy`)
  const connectionString = withDatabaseName(serverUrl, name)
  if (content !== 'empty' && !isOwn)
    return { ...(await openRestorable(byFastestWay(connectionString))), connectionString }
  return { connectionString, restore: async () => false, close: async () => {} }
}

function nameSource(serverUrl: string, content: DatabaseContent, isOwn: boolean): string {
  if (content === 'empty') return 'template0'
  return isOwn ? nameTemplate(serverUrl, content) : nameKeptTemplate(serverUrl, content)
}

async function dropDatabase(taken: RestorableDatabase): Promise<void> {
  await taken.close()
  const name = new URL(taken.connectionString).pathname.slice(1)
  await runOnServer(inject('databaseServerUrl'), `drop database ${name} with (force)`)
}

let administration: Promise<pg.Client> | undefined

/** Runs a statement on the one connection that this process keeps for it: opening one costs as much as a small statement. */
async function runOnServer(url: string, statement: string): Promise<void> {
  administration ??= connect(byFastestWay(url))
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

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../src/postgres/embedded.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { systemRandom } from '../../src/random.ts'
import { TEMPLATE_DATABASE, withDatabaseName } from './database-url.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The server all tests share, as its superuser. */
    databaseServerUrl: string
  }
}

/**
 * Starts one PostgreSQL for the whole run, or takes the one that TEST_DATABASE_URL names, and migrates the template
 * database that each test file clones.
 */
export default async function setup(project: TestProject) {
  const given = process.env.TEST_DATABASE_URL
  const server = given ? { url: given, stop: async () => {} } : await startThrowawayServer()
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query(`drop database if exists ${TEMPLATE_DATABASE}`)
  await client.query(`create database ${TEMPLATE_DATABASE}`)
  await client.end()
  await migrate(withDatabaseName(server.url, TEMPLATE_DATABASE))
  project.provide('databaseServerUrl', server.url)
  return () => server.stop()
}

async function startThrowawayServer() {
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox test '))
  const postgres = await startEmbeddedPostgres({
    dataDir,
    random: systemRandom,
    log: () => {},
    // Durability is not what these tests are about; crash tests stop processes, never the machine.
    settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '200' },
  })
  return {
    url: postgres.connectionString,
    stop: async () => {
      await postgres.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

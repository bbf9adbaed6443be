import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { expect, test } from 'vitest'
import { migrate } from '../../src/postgres/migration/migrate.ts'
import { listPresentServers } from '../harness/database/servers.ts'
import { listBlocks } from '../harness/process/guide-shell.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'

/** The commands of a backup, a restore and a standby as the pages have them, by the programs of each installed PostgreSQL. */

const servers = (await listPresentServers()).filter(({ binDir }) => binDir !== undefined)
if (servers.length === 0)
  process.stdout.write('No PostgreSQL of the system is installed: a backup and a restore are checked by their text.\n')

const readBlocks = async (page: string, title: string) => {
  const text = await readFile(join(PROJECT_ROOT, 'docs', page), 'utf8')
  const [, section = ''] = new RegExp(`^## ${title}$([\\s\\S]*?)(?=^## |$(?![\\s\\S]))`, 'm').exec(text) ?? []
  return listBlocks(section)
}
const [makeDatabase] = await readBlocks('deployment.md', 'A minimal production')
const backup = await readBlocks('operations.md', 'Backups and restore')
const standby = await readBlocks('operations/failover.md', 'A standby by hand')

test('the pages have a dump, an empty database, a restore and a copy for a standby', () => {
  expect(makeDatabase?.language).toBe('sql')
  expect(backup.map(({ language }) => language)).toEqual(['sh', 'sql', 'sh'])
  // A restored database is made as a new one.
  expect(makeDatabase?.text).toContain(backup[1]?.text.split('\n')[1])
  expect(standby.map(({ language }) => language)).toEqual(['sql', 'text', 'sql'])
})

test.for(servers)('a backup, a restore and a copy on $name', { timeout: 240_000 }, async ({ binDir, start }) => {
  await using server = await start()
  const folder = await mkdtemp(join(tmpdir(), 'signalbox backup '))
  const databaseUrl = Object.assign(new URL(server.connectionString), {
    ...{ username: 'signalbox', password: 'own', pathname: '/signalbox' },
  }).href
  const run = (text = '') =>
    promisify(execFile)('/bin/sh', ['-ec', text], {
      ...{ cwd: folder, timeout: 120_000 },
      env: { PATH: `${binDir}:/usr/bin:/bin`, DATABASE_URL: databaseUrl },
    })
  const ask = async (url: string, text = '') => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      // Each by itself: a database is made outside of a transaction.
      const answers = text.split(/;\n/).filter((statement) => statement.trim() !== '')
      let rows: unknown[] = []
      for (const statement of answers) rows = (await client.query(statement)).rows
      return rows
    } finally {
      await client.end()
    }
  }
  try {
    await ask(server.connectionString, makeDatabase?.text)
    await migrate(databaseUrl)
    await ask(databaseUrl, 'create table kept as select 7 as value')
    const [dump, empty, restore] = backup
    await run(dump?.text)
    await ask(server.connectionString, empty?.text)
    await run(restore?.text)
    expect(await ask(databaseUrl, 'select value from kept')).toEqual([{ value: 7 }])
    const owners = `select distinct tableowner from pg_tables where schemaname = 'public'`
    expect(await ask(databaseUrl, owners)).toEqual([{ tableowner: 'signalbox' }])
    // The next start finds the schema as it was.
    await migrate(databaseUrl)

    const [makeReplicator, copy] = standby
    await ask(server.connectionString, makeReplicator?.text)
    const { hostname, port } = new URL(server.connectionString)
    const target = join(folder, 'standby')
    await run(
      copy?.text
        .replace('--pgdata=/var/lib/postgresql/data', `--pgdata='${target}'`)
        .replace('host=db1', `host=${hostname} port=${port}`),
    )
    await stat(join(target, 'standby.signal'))
    expect(await readFile(join(target, 'postgresql.auto.conf'), 'utf8')).toMatch(/application_name=db2[\s\S]*'db2'/)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

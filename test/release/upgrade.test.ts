import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { UserId } from '../../src/base/id.ts'
import { readMigrations } from '../../src/postgres/migration/migrate.ts'
import { RELEASES, readFrozen } from '../../tools/release/frozen-release.ts'
import { SMALL_HASH_ENVIRONMENT } from '../harness/app/small-hash.ts'
import { buildSecretEnvironment } from '../harness/app/test-secrets.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { findDataRoot } from '../harness/process/data-root.ts'
import { PROJECT_ROOT, runToEnd, startProcess } from '../harness/process/process.ts'
import { buildServiceEnvironment, findProgram } from '../harness/process/service-process.ts'
import { installRelease } from '../harness/release/installed-release.ts'
import { openKeptRelease } from '../harness/release/kept-release.ts'
import { waitFor } from '../harness/run/wait.ts'

// Whole processes: on a busy machine each start alone may take many seconds.
vi.setConfig({ testTimeout: 400_000 })

/** The folders of the last release and of the one that replaces it. */
interface Upgrade extends AsyncDisposable {
  older: string
  newer: string
}

/** The last release and this checkout; before the first release this one, packed, and the same with one more migration. */
async function openUpgrade(): Promise<Upgrade> {
  const frozen = await readFrozen()
  if (frozen) {
    const older = await installRelease(join(RELEASES, frozen.tarball))
    return { older: older.root, newer: PROJECT_ROOT, [Symbol.asyncDispose]: () => older[Symbol.asyncDispose]() }
  }
  const kept = await openKeptRelease()
  return { older: kept.root, newer: kept.next, [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose]() }
}

/** Where Node keeps what it compiled of a release: there, as its launcher does. */
const compiledIn = (root: string) => ({ NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'node-compile') })

/** Lets a release make its schema in an empty database, with a month of sample data. */
async function fill(root: string, { connectionString }: TestDatabase): Promise<void> {
  const dataDir = await mkdtemp(join(await findDataRoot(), 'signalbox upgrade '))
  try {
    const settings = { DATABASE_URL: connectionString, PORT: '0', SIGNALBOX_DATA_DIR: dataDir }
    const env = { ...settings, ...buildSecretEnvironment(), ...SMALL_HASH_ENVIRONMENT, ...compiledIn(root) }
    await using service = startProcess({ args: [findProgram(root), 'serve', '--sample'], env, cwd: dataDir })
    await service.waitForOutput(/Sample data: \d+ accounts/, 180_000)
    await service.waitForOutput(/listens on (\S+)/)
    service.signal('SIGTERM')
    expect(await service.ended, service.stdout() + service.stderr()).toEqual({ code: 0, signal: null })
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function readContent({ pool }: TestDatabase): Promise<Record<string, string>> {
  const { rows } = await pool.query(`
    select (select md5(string_agg(u.email, ',' order by u.document_id)) from "user" u) users,
      (select md5(string_agg(a.name, ',' order by a.document_id)) from account a) accounts,
      (select md5(string_agg(w.name, ',' order by w.document_id)) from webhook w) webhooks,
      (select count(*) from event_occurrence) events,
      (select md5(string_agg(d.status, ',' order by d.document_id)) from webhook_dispatch d) deliveries`)
  return rows[0]
}

async function findAdministrator({ pool }: TestDatabase): Promise<UserId> {
  const { rows } = await pool.query<{ document_id: UserId }>(
    `select document_id from "user" where email = 'admin@signalbox.localhost'`,
  )
  return rows[0]!.document_id
}

test('a database of the last release with sample data is migrated by this one, which runs beside processes of the last where its migrations are additive', async () => {
  await using upgrade = await openUpgrade()
  await using database = await createTestDatabase({ content: 'empty' })
  await fill(upgrade.older, database)
  const before = await readContent(database)
  expect(Number(before.events)).toBeGreaterThan(100)
  const { rows: ran } = await database.pool.query<{ name: string }>('select name from schema_migration')
  const known = new Set(ran.map(({ name }) => name))
  const pending = (await readMigrations(join(upgrade.newer, 'migrations'))).filter(({ name }) => !known.has(name))

  const migrated = await runToEnd({
    args: [findProgram(upgrade.newer), 'migrate'],
    env: { ...buildServiceEnvironment(database.connectionString), ...compiledIn(upgrade.newer) },
  })
  expect(migrated, migrated.stderr).toMatchObject({ code: 0 })
  expect(await readContent(database)).toEqual(before)

  await using fixture = await openDeliveryFixture({ ...database, administrator: await findAdministrator(database) })
  const receiver = await fixture.receive()
  const fleet = [await fixture.start({ root: upgrade.newer, env: compiledIn(upgrade.newer) })]
  if (pending.every(({ isAdditive }) => isAdditive))
    fleet.push(await fixture.start({ root: upgrade.older, env: compiledIn(upgrade.older) }))
  await fixture.subscribe(fleet[0]!, receiver)
  for (const service of fleet) {
    const id = await fixture.change(service)
    await waitFor('the delivery', () =>
      receiver.requests.some(({ body }) => JSON.parse(body.toString()).data.id === id),
    )
  }
  for (const service of fleet) expect(await service.stop()).toEqual({ code: 0, signal: null })
  if (fleet[1] && pending.length > 0) expect(fleet[1].stderr()).toContain('the schema is that of a newer release')
})

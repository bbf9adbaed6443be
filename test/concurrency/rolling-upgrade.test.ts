import { randomUUID } from 'node:crypto'
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { readMigrations } from '../../src/postgres/migration/migrate.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { findDataRoot } from '../harness/process/data-root.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { PROJECT_ROOT, runToEnd } from '../harness/process/process.ts'
import { buildServiceEnvironment, type ServiceProcess } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

// Whole processes: on a busy machine each start alone may take many seconds.
vi.setConfig({ testTimeout: 400_000 })

/** What a newer release has of its own, and what it shares with this one. */
const COPIED = ['src', 'migrations']
const SHARED = ['bin', 'docs', 'packages', 'package.json', 'package-lock.json', 'catalogue.json', 'node_modules']

/** Additions of the newer release: a table, and a column with a default in a table that every request writes. */
const ADDITION = `-- additive
create table release_note (document_id uuid primary key, text text not null);
alter table contract add column note text not null default '';
`

/** A newer release: a copy of this one with one more migration. Removed at the end of its scope. */
async function buildNewerRelease(): Promise<AsyncDisposable & { root: string; migration: string }> {
  const root = await mkdtemp(join(await findDataRoot(), 'signalbox newer '))
  for (const name of COPIED) await cp(join(PROJECT_ROOT, name), join(root, name), { recursive: true })
  for (const name of SHARED) await symlink(join(PROJECT_ROOT, name), join(root, name))
  const number = String((await readMigrations()).length + 1).padStart(4, '0')
  const migration = `${number}_newer_release`
  await writeFile(join(root, 'migrations', `${migration}.sql`), ADDITION)
  return { root, migration, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) }
}

/** A member of a fleet. */
type Member = LocalService | ServiceProcess

/** Log of a member. */
const readLog = (member: Member) => ('logged' in member ? member.logged() : member.stderr())

/** Pause between two changes: most of the time of this test is the start of processes. */
const PAUSE_MS = 50

/** Changes under way: each is repeated, with the same key, at any process of the fleet until one accepts it. */
function startLoad(fixture: DeliveryFixture, fleet: readonly Member[]) {
  const accepted: string[] = []
  let isOver = false
  let turn = 0
  const change = async () => {
    const headers = { 'idempotency-key': randomUUID() }
    await waitFor('an accepted change', async () => {
      const service = fleet[turn++ % fleet.length]!
      // A process that stops refuses the connection, or breaks it under the request.
      const id = await fixture.change(service, headers).catch(() => undefined)
      if (id !== undefined) accepted.push(id)
      return id
    })
  }
  const client = (async () => {
    while (!isOver) {
      await change()
      const changedAt = performance.now()
      await waitFor('the next change', () => performance.now() - changedAt > PAUSE_MS)
    }
  })()
  client.catch(() => {})
  const stop = async () => {
    isOver = true
    await client
    return accepted
  }
  return { accepted, stop }
}

test('a fleet is rolled up to a release with an additive migration and down again under load, and every accepted change is delivered', async () => {
  await using newer = await buildNewerRelease()
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const [first, second] = [await fixture.start(), await fixture.startLocal()]
  const fleet: Member[] = [first, second]
  await fixture.subscribe(first, receiver)
  const load = startLoad(fixture, fleet)

  /** One step of a rolling upgrade: a member joins the fleet, one leaves it, and changes go on. */
  const step = async ({ joining, leaving }: { joining?: Member; leaving?: Member }) => {
    if (joining) fleet.push(joining)
    if (leaving) {
      fleet.splice(fleet.indexOf(leaving), 1)
      const ending = await leaving.stop()
      if (ending) expect(ending).toEqual({ code: 0, signal: null })
    }
    const before = load.accepted.length
    await waitFor('changes at the fleet', () => load.accepted.length > before + 20)
  }
  const upgraded = await fixture.start({ root: newer.root })
  await step({ joining: upgraded, leaving: first })
  await step({ leaving: second })
  const { rows } = await fixture.database.pool.query('select is_additive from schema_migration where name = $1', [
    newer.migration,
  ])
  expect(rows).toEqual([{ is_additive: true }])
  const downgraded = [await fixture.startLocal(), await fixture.startLocal()]
  await step({ joining: downgraded[0]! })
  await step({ joining: downgraded[1]!, leaving: upgraded })
  for (const older of downgraded) {
    expect(readLog(older)).toContain('the schema is that of a newer release')
    expect(readLog(older)).toContain(newer.migration)
  }

  const accepted = await load.stop()
  expect(new Set(accepted).size).toBe(accepted.length)
  const ledger = await fixture.waitForLedger(accepted.length, ['success'], 90_000)
  expect(ledger).toHaveLength(accepted.length)
  const seen = new Set(receiver.requests.map(({ body }) => JSON.parse(body.toString()).data.id))
  expect(accepted.filter((id) => !seen.has(id))).toEqual([])
})

test('a release does not start on a migration of a newer one that is not additive, says the way back, and changes nothing', async () => {
  await using fixture = await openDeliveryFixture()
  const { pool, connectionString } = fixture.database
  await pool.query(`insert into schema_migration values ('9999_newer_release', 'hash', now(), false)`)
  const { code, stderr } = await runToEnd({
    args: [await bundleProgram(), 'serve'],
    env: buildServiceEnvironment(connectionString),
  })
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /migration 9999_newer_release, .*not additive\. Run the newer release, or restore the backup .*\(schema_ahead: see docs\/operations\.md, schema_ahead\)/,
  )
  // The same once the migration says that it is additive.
  await pool.query(`update schema_migration set is_additive = true where name = '9999_newer_release'`)
  const service = await fixture.startLocal()
  expect((await service.call('GET', '/api/v3/webhook/webhook')).status).toBe(200)
})

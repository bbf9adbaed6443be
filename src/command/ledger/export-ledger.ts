import type { Resources } from '../../app/prepare/resources.ts'
import { systemClock } from '../../base/clock.ts'
import { buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { VERSION } from '../../base/version.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { Storage } from '../../webhook/archive/storage/storage.ts'
import { print } from '../print/print.ts'

/** What the commands of databases share. */
export interface LedgerFixture {
  withFixture: (options: { prepare: boolean }, work: (resources: Resources) => Promise<void>) => Promise<void>
  /** Runs on home and then on every cell; returns the names of the cells where it succeeded. */
  onEachDatabase: (
    resources: Pick<Resources, 'database' | 'secrets'>,
    work: (db: Database, cell: string | null) => Promise<void>,
  ) => Promise<string[]>
}

/** Opens the archive for a work, and closes it after. */
export type UseArchive = (work: (storage: Storage) => Promise<void>) => Promise<void>

/** Exports home and every cell. The place is opened, and what an earlier export left unfinished removed, behind the lock. */
export async function exportLedger(fixture: LedgerFixture, useArchive: UseArchive, before: Date): Promise<void> {
  await fixture.withFixture({ prepare: false }, async (resources) => {
    const { checkBefore } = await import('../../webhook/archive/export-archive.ts')
    checkBefore(before, new Date(systemClock.now()))
    await using _lock = await holdLock(resources)
    await useArchive((storage) => exportDatabases(resources, storage, { fixture, before }))
  })
}

async function exportDatabases(
  resources: Resources,
  storage: Storage,
  { fixture, before }: { fixture: LedgerFixture; before: Date },
): Promise<void> {
  const { exportArchive } = await import('../../webhook/archive/export-archive.ts')
  const now = () => new Date(systemClock.now())
  const createdBy = `signalbox version ${VERSION}`
  const onFile = ({ file, rows }: { file: string; rows: number }) => print(`${file}: ${rows} rows`)
  const totals = { files: 0, rows: 0 }
  const { maintenanceDatabase: database, secrets } = resources
  const cells = await fixture.onEachDatabase({ database, secrets }, async (db, cell) => {
    const given = { db, database: cell ?? 'home', storage, now, createdBy, onFile }
    const { files, rows } = await exportArchive(given, before)
    totals.files += files
    totals.rows += rows
  })
  await recordCommand(database.db, 'ledger.export', { to: storage.place, before: before.toISOString(), ...totals })
  print(`${totals.rows} rows in ${totals.files} new files in ${storage.place}, of ${['home', ...cells].join(', ')}.`)
}

/** Holds the lock of exports by a connection of its own. Throws `export_running`. */
export async function holdLock({ connectionString }: Resources): Promise<AsyncDisposable> {
  const [{ openDatabase }, { takeExportLock }, { ArchiveError }] = await Promise.all([
    import('../../postgres/statement/database.ts'),
    import('../../webhook/archive/archive.store.ts'),
    import('../../webhook/archive/storage/archive-error.ts'),
  ])
  const pool = openDatabase({ connectionString, size: 1, applicationName: 'signalbox export', onError: () => {} })
  const client = await pool.connect()
  const close = async () => {
    client.release(true)
    await pool.close()
  }
  if (await takeExportLock(client)) return { [Symbol.asyncDispose]: close }
  await close()
  throw new ArchiveError('export_running', 'Another export of this ledger, or a removal, is running. Wait for its end.')
}

/** Writes the audit entry of a command on an archive. */
export async function recordCommand(
  db: Database,
  action: 'ledger.export' | 'ledger.remove',
  detail: Record<string, unknown>,
): Promise<void> {
  const { recordAudit } = await import('../../event/recording/audit.ts')
  const { findSystemUser } = await import('../../app/prepare/command-record.ts')
  const { inTransaction } = await import('../../postgres/statement/database.ts')
  const deps = { ids: buildIdMaker(systemClock, systemRandom), now: new Date(systemClock.now()) }
  const actor = { actor: 'command line', system_user: findSystemUser() }
  await inTransaction(db, (tx) =>
    recordAudit(tx, deps, {
      ...{ action, outcome: 'success', userId: null, detail: { ...detail, ...actor } },
    }),
  )
}

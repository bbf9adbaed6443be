import type { Resources } from '../../app/prepare/resources.ts'
import { systemClock } from '../../base/clock.ts'
import { VERSION } from '../../base/version.ts'
import type { Storage } from '../../webhook/archive/storage/storage.ts'
import { onEachDatabase } from '../database/each-database.ts'
import { recordCommandAudit, withFixture } from '../database/resources.ts'
import { print } from '../print/print.ts'

/** Opens the archive for a work, and closes it after. */
export type UseArchive = (work: (storage: Storage) => Promise<void>) => Promise<void>

/**
 * Exports home and every cell. The place is opened, and what an earlier export left unfinished removed, behind the lock. `given`:
 * the day before which rows are exported; the latest that may be by default.
 */
export async function exportLedger(useArchive: UseArchive, given: Date | undefined): Promise<void> {
  await withFixture({ prepare: false }, async (resources) => {
    const { checkBefore, findLatestBefore } = await import('../../webhook/archive/export-archive.ts')
    const now = new Date(systemClock.now())
    const before = given ?? findLatestBefore(now)
    checkBefore(before, now)
    await using _lock = await holdLock(resources)
    await useArchive((storage) => exportDatabases(resources, storage, before))
  })
}

async function exportDatabases(resources: Resources, storage: Storage, before: Date): Promise<void> {
  const { exportArchive } = await import('../../webhook/archive/export-archive.ts')
  const now = () => new Date(systemClock.now())
  const createdBy = `signalbox version ${VERSION}`
  const onFile = ({ file, rows }: { file: string; rows: number }) => print(`${file}: ${rows} rows`)
  const totals = { files: 0, rows: 0 }
  const { maintenanceDatabase: database, secrets } = resources
  const cells = await onEachDatabase({ database, secrets }, async (db, cell) => {
    const given = { db, database: cell ?? 'home', storage, now, createdBy, onFile }
    const { files, rows } = await exportArchive(given, before)
    totals.files += files
    totals.rows += rows
  })
  const detail = { to: storage.place, before: before.toISOString(), ...totals }
  await recordCommandAudit(database.db, { action: 'ledger.export', detail })
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

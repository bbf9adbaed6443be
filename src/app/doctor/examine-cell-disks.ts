import type { Keyring } from '../../base/keyring.ts'
import type { Finding } from '../../operations/doctor/finding.ts'
import { classifyStorage, describeStorage } from '../../operations/doctor/storage-findings.ts'
import { readStorageForecast, type StorageRetention } from '../../operations/storage/storage.ts'
import { cellContextOf, listCells } from '../../postgres/cell/cell.store.ts'
import { type Database, openDatabase } from '../../postgres/statement/database.ts'

/** The disks of cells: a line and the findings of each. One that is away has none: `cells_broken` names it. */
export async function examineCellDisks(
  home: Database,
  given: {
    keyring: Keyring
    /** `CELL_DISK_BYTES`. */
    diskBytes: ReadonlyMap<string, number> | undefined
    retention: StorageRetention
    now: Date
  },
): Promise<{ notes: string[]; findings: Finding[] }> {
  const { keyring, diskBytes, retention, now } = given
  const cells = (await listCells(home)).filter(({ state }) => state !== 'joining')
  const found = await Promise.all(
    cells.map(async ({ name, databaseUrlEncrypted }) => {
      const connectionString = keyring.open(databaseUrlEncrypted, cellContextOf(name))
      const pool = openDatabase({ connectionString, size: 1, applicationName: 'signalbox doctor', onError: () => {} })
      try {
        const disk = { dataDir: undefined, diskBytes: diskBytes?.get(name) }
        const storage = await readStorageForecast(pool.db, { now, disk, retention })
        return {
          note: describeStorage(storage, now.getTime(), name),
          findings: classifyStorage(storage, now.getTime(), name),
        }
      } catch {
        return undefined
      } finally {
        await pool.close()
      }
    }),
  )
  const read = found.filter((one) => one !== undefined)
  return { notes: read.map(({ note }) => note), findings: read.flatMap(({ findings }) => findings) }
}

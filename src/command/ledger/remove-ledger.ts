import { FatalError } from '../../app/log/fatal.ts'
import { systemClock } from '../../base/clock.ts'
import { recordCommandAudit, withFixture } from '../database/resources.ts'
import { print } from '../print/print.ts'
import { holdLock, type UseArchive } from './export-ledger.ts'

/** Removes files of an archive, behind the lock of exports: none writes a manifest meanwhile. */
export async function removeFromLedger(
  useArchive: UseArchive,
  { account, before }: { account?: string | null; before?: Date },
): Promise<void> {
  if (account === undefined && before === undefined)
    throw new FatalError('Give --account, --before, or both: what is removed is not written again.')
  if (before && before.getTime() > systemClock.now())
    throw new FatalError('--before must not be in the future: give the day of UTC from which files are kept.')
  await withFixture({ prepare: false }, async (resources) => {
    const { removeArchive } = await import('../../webhook/archive/remove-archive.ts')
    const { listCells } = await import('../../postgres/cell/cell.store.ts')
    const { db } = resources.maintenanceDatabase
    await using _lock = await holdLock(resources)
    const databases = ['home', ...(await listCells(db)).map(({ name }) => name)]
    await useArchive(async (storage) => {
      const day = before?.toISOString().slice(0, 10)
      const removal = { ...(account !== undefined && { account }), ...(day !== undefined && { before: day }) }
      const files = await removeArchive(storage, removal, { databases, onFile: (file) => print(file) })
      await recordCommandAudit(db, { action: 'ledger.remove', detail: { from: storage.place, ...removal, files } })
      print(`${files} files removed from ${storage.place}.`)
    })
  })
}

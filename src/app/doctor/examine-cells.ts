import type { Keyring } from '../../base/keyring.ts'
import { readCellStatus } from '../../carriage/cell/cell-status.ts'
import { type Finding, fail } from '../../operations/doctor/finding.ts'
import { findIdentity } from '../../postgres/cell/cell.store.ts'
import { type Database, openDatabase } from '../../postgres/statement/database.ts'

/** Looks at the cells of home, where there are some: one finding with all that is to be done. */
export async function examineCells(
  home: Database,
  { keyring, hasLog, now }: { keyring: Keyring; hasLog: boolean; now: Date },
): Promise<Finding[]> {
  const identity = await findIdentity(home)
  if (!identity) return []
  if (identity.cell !== null)
    return [
      fail(
        'cells_broken',
        `The database of DATABASE_URL is the cell ${identity.cell}.`,
        'Set DATABASE_URL to the database of home.',
      ),
    ]
  const open = (connectionString: string) =>
    openDatabase({ connectionString, size: 1, applicationName: 'signalbox doctor', onError: () => {} })
  const { remedies } = await readCellStatus({ home, keyring, open, now: () => now }, { hasLog })
  const [first] = remedies
  if (first === undefined) return []
  return [fail('cells_broken', remedies.join(' '), 'Run signalbox cell status, and do what it says.')]
}

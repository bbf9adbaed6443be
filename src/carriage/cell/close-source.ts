import type { Database } from '../../postgres/statement/database.ts'
import { CellError } from './cell-error.ts'
import { closeReferenceSource } from './reference.store.ts'

/** SQLSTATEs of PostgreSQL. */
const OBJECT_IN_USE = '55006'
const INSUFFICIENT_PRIVILEGE = '42501'

/** Ends what home keeps for a cell. Throws a `CellError`. */
export async function closeSource(home: Database, name: string): Promise<void> {
  await closeReferenceSource(home, name).catch((error: Error & { code?: string }) => {
    if (error.code !== OBJECT_IN_USE && error.code !== INSUFFICIENT_PRIVILEGE) throw error
    throw new CellError(
      'home_slot_used',
      `The server of the cell ${name} still reads the reference rows of home. Drop its subscription signalbox_reference there, and run the command again.`,
    )
  })
}

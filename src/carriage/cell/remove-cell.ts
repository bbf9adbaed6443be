import {
  changeCellState,
  closeUnusedFence,
  findCell,
  lockCell,
  lockCells,
  removeCell,
} from '../../postgres/cell/cell.store.ts'
import { inTransaction, isLockTimeout } from '../../postgres/statement/database.ts'
import type { AddCellDeps } from './add-cell.ts'
import { CellError } from './cell-error.ts'
import { buildCellUse, buildUnknownCell, loadCell } from './cell-status.ts'
import { closeSource } from './close-source.ts'
import { leaveReference, readSourceFacts } from './reference.store.ts'

/** Lets no more account move to a cell. Throws a `CellError`. */
export async function drainCell(
  { home, now, record }: Pick<AddCellDeps, 'home' | 'now' | 'record'>,
  name: string,
): Promise<void> {
  await inTransaction(home, async (tx) => {
    const { state } = await loadCell(tx, name)
    if (state === 'draining') return
    if (!(await changeCellState(tx, { name, state: 'draining', from: ['active'], now: now() })))
      throw new CellError('cell_state', `The cell ${name} is ${state}: only an active cell is drained.`)
    await record(tx, { command: 'cell drain', cell: name })
  })
}

/** Removes a cell without accounts; what it has stays there. The last one ends the checks of home's writes. */
export async function dropCell(
  { home, keyring, open, record }: Pick<AddCellDeps, 'home' | 'keyring' | 'open' | 'record'>,
  name: string,
): Promise<{ isLeft: boolean }> {
  const cell = await findCell(home, { name })
  if (!cell) {
    // A command that was killed has removed the cell, and left what home keeps for it.
    if ((await readSourceFacts(home, name)).isLost) throw buildUnknownCell(name)
    await closeSource(home, name)
    return { isLeft: false }
  }
  await inTransaction(home, async (tx) => {
    await lockCells(tx)
    await lockCell(tx, { name })
    if (!(await removeCell(tx, { name })))
      throw new CellError('cell_has_accounts', `The cell ${name} has accounts, or a move. Move them away first.`)
    await closeUnusedFence(tx)
    await record(tx, { command: 'cell remove', cell: name })
  }).catch((error: unknown) => {
    if (!isLockTimeout(error)) throw error
    throw new CellError(
      'home_busy',
      'Statements in home lasted, so that the checks of its writes could not be ended. Nothing was changed: run the command again.',
    )
  })
  return buildCellUse({ keyring, open })(cell, async (db) => {
    const isLeft = await leaveReference(db).then(
      () => true,
      // It was killed before its migrations: there is nothing to leave.
      (error: { code?: string }) => error.code === UNDEFINED_FUNCTION,
    )
    await closeSource(home, name)
    return { isLeft }
  })
}

/** SQLSTATE of PostgreSQL. */
const UNDEFINED_FUNCTION = '42883'

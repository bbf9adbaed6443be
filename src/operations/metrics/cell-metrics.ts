import { type CellFacts, listFigures } from '../health/cell-facts.ts'
import type { Instruments } from './instruments.ts'

/** The metrics of cells, one series for each cell. A service without cells has none. */
export function buildCellMetrics(metrics: Instruments): (facts: CellFacts | undefined) => void {
  const up = metrics.gauge('cell_up', '1 while the cell answers this process, else 0.', ['cell'])
  const accounts = metrics.gauge('cell_accounts', 'Accounts in the cell.', ['cell'])
  const waiting = metrics.gauge(
    'cell_oldest_waiting_seconds',
    'Age of the oldest event of the cell that waits for the event log.',
    ['cell'],
  )
  const lag = metrics.gauge('cell_reference_lag_bytes', 'Changes of home that the cell has not confirmed.', ['cell'])
  const backlog = metrics.gauge(
    'cell_backlog',
    'Due dispatches and events without routing in the cell; 10000 stands for that many or more.',
    ['cell'],
  )
  const oldest = metrics.gauge('cell_oldest_due_seconds', 'Age of the oldest of these; 0 when none waits.', ['cell'])
  const deliveries = metrics.gauge(
    'cell_deliveries_total',
    'Deliveries of the cell that reached each status, over all time and all processes.',
    ['cell', 'status'],
  )
  const size = metrics.gauge('cell_database_size_bytes', 'Disk space used by the database of the cell.', ['cell'])
  const missing = metrics.gauge(
    'cells_missing',
    'Cells that do not answer: figures over all databases are without theirs.',
  )
  const remedies = metrics.gauge(
    'cells_remedies',
    'Things that are to be done about cells: signalbox cell status names them.',
  )
  const interrupted = metrics.gauge('account_moves_interrupted', 'Moves of accounts that no process runs.')
  const byCell = [up, accounts, waiting, lag, backlog, oldest, deliveries, size]
  return (facts) => {
    // A cell that was removed, or is away, has no series.
    for (const each of byCell) each.reset()
    missing.set(listFigures(facts).missing.length)
    remedies.set(facts?.status.remedies.length ?? 0)
    interrupted.set(facts?.status.interrupted ?? 0)
    for (const { name, state, is_reachable: isReachable, ...known } of facts?.status.databases ?? []) {
      if (state === 'home') continue
      const cell = { cell: name }
      up.set(cell, isReachable ? 1 : 0)
      accounts.set(cell, known.accounts ?? 0)
      if (known.outbox) waiting.set(cell, known.outbox.oldest_waiting_s)
      if (known.reference?.lag_bytes != null) lag.set(cell, known.reference.lag_bytes)
      const figures = facts?.figures.get(name)
      if (!figures) continue
      backlog.set(cell, figures.webhookOut.backlog)
      oldest.set(cell, figures.webhookOut.oldest_pending_s)
      for (const [status, count] of figures.totals) deliveries.set({ cell: name, status }, count)
      if (figures.databaseBytes !== undefined) size.set(cell, figures.databaseBytes)
    }
  }
}

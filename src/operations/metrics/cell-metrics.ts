import { type CellFacts, listFigures } from '../health/cell-facts.ts'
import type { Instruments } from './instruments.ts'

/** Every status is in a metric from the start, so that a rate has no gap at its beginning. */
export const DELIVERY_STATUSES = ['pending', 'retrying', 'success', 'exhausted', 'failed', 'cancelled'] as const

const DAY_SECONDS = 24 * 3_600

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
  const free = metrics.gauge(
    'cell_database_disk_free_bytes',
    'Disk space left for the database of the cell, of CELL_DISK_BYTES.',
    ['cell'],
  )
  const full = metrics.gauge(
    'cell_database_disk_full_seconds',
    'Seconds until the cell has no disk space left, at the growth of the last days; +Inf without growth or without data.',
    ['cell'],
  )
  const missing = metrics.gauge(
    'cells_missing',
    'Cells that do not answer: figures over all databases are without theirs.',
  )
  const remedies = metrics.gauge(
    'cells_remedies',
    'Things that are to be done about cells: signalbox cell status names them.',
  )
  const interrupted = metrics.gauge('account_moves_interrupted', 'Moves of accounts that no process runs.')
  const byCell = [up, accounts, waiting, lag, backlog, oldest, deliveries, size, free, full]
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
      for (const status of DELIVERY_STATUSES) deliveries.set({ cell: name, status }, figures.totals.get(status) ?? 0)
      const { storage } = figures
      if (!storage) continue
      size.set(cell, storage.databaseBytes)
      if (storage.freeBytes !== undefined) free.set(cell, storage.freeBytes)
      full.set(cell, (storage.fullInDays ?? Number.POSITIVE_INFINITY) * DAY_SECONDS)
    }
  }
}

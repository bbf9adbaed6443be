import type { CellFacts } from '../health/cell-facts.ts'
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
  const remedies = metrics.gauge(
    'cells_remedies',
    'Things that are to be done about cells: signalbox cell status names them.',
  )
  const interrupted = metrics.gauge('account_moves_interrupted', 'Moves of accounts that no process runs.')
  const byCell = [up, accounts, waiting, lag, backlog, oldest]
  return (facts) => {
    // A cell that was removed, or is away, has no series.
    for (const each of byCell) each.reset()
    remedies.set(facts?.status.remedies.length ?? 0)
    interrupted.set(facts?.status.interrupted ?? 0)
    for (const { name, state, is_reachable: isReachable, ...known } of facts?.status.databases ?? []) {
      if (state === 'home') continue
      const cell = { cell: name }
      up.set(cell, isReachable ? 1 : 0)
      accounts.set(cell, known.accounts ?? 0)
      if (known.outbox) waiting.set(cell, known.outbox.oldest_waiting_s)
      if (known.reference?.lag_bytes != null) lag.set(cell, known.reference.lag_bytes)
      const work = facts?.work.get(name)
      if (work) backlog.set(cell, work.backlog)
      if (work) oldest.set(cell, work.oldest_pending_s)
    }
  }
}

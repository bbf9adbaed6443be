import type { CellStatus } from '../../carriage/cell/cell-status.ts'
import type { WebhookOutFacts } from '../health/webhook-out.ts'
import type { Instruments } from './instruments.ts'

/** What is known of the cells. */
export interface CellMetricsFacts {
  status: CellStatus
  /** The work of each cell that answers, by name. */
  work: ReadonlyMap<string, WebhookOutFacts>
}

/** The metrics of cells, one series for each cell. A service without cells has none. */
export function buildCellMetrics(metrics: Instruments): (facts: CellMetricsFacts | undefined) => void {
  const gauge = (name: string, help: string) => metrics.gauge(name, help, ['cell'])
  const up = gauge('cell_up', '1 while the cell answers this process, else 0.')
  const accounts = gauge('cell_accounts', 'Accounts in the cell.')
  const waiting = gauge(
    'cell_oldest_waiting_seconds',
    'Age of the oldest event of the cell that waits for the event log.',
  )
  const lag = gauge('cell_reference_lag_bytes', 'Changes of home that the cell has not confirmed.')
  const backlog = gauge(
    'cell_backlog',
    'Due dispatches and events without routing in the cell; 10000 stands for that many or more.',
  )
  const oldest = gauge('cell_oldest_due_seconds', 'Age of the oldest of these; 0 when none waits.')
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

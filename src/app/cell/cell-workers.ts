import type { IntakeCounts } from '../../carriage/intake/intake.ts'
import type { Relay } from '../../carriage/relay/relay.ts'
import type { EventLogSettings } from '../../carriage/settings.ts'
import type { Dispatcher } from '../../delivery/dispatcher/dispatcher.ts'
import type { Router } from '../../delivery/routing/router.ts'
import type { AlertWorker } from '../../operations/alert/alert-worker.ts'
import type { Metrics } from '../../operations/metrics/metrics.ts'
import type { Invalidation } from '../../postgres/connection/invalidated-cache.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { NoticeWorker } from '../../webhook/mail/notice-worker.ts'
import type { PullDeps } from '../../webhook/pull/pull.ts'
import { buildCellAlertWorker } from '../work/alerts.ts'
import { buildEngine, type Engine } from '../work/engine.ts'
import { buildCellNoticeWorker } from '../work/mail-workers.ts'
import type { WorkerParts } from '../work/worker-parts.ts'
import { buildAppIntake } from './app-intake.ts'

/** The workers of this process on one cell. */
export interface CellWorkers {
  dispatcher: Dispatcher
  router: Router
  pulls: PullDeps
  relay: Relay | undefined
  /** Writes the mails about webhooks of the cell to the outbox of home, and posts its incidents. */
  noticeWorker: NoticeWorker
  alertWorker: AlertWorker
  /** Notifies this process and the others of work in the cell. Never throws. */
  notify(): void
  isLive(withinMs?: number): boolean
  start(): void
  stop(): Promise<void>
}

/** Builds the workers of a cell, on its pools in `parts`: the engine and the intake. The clock follows home alone. */
export function buildCellWorkers(
  parts: Omit<WorkerParts, 'time'>,
  shared: {
    metrics: Metrics
    eventLog: EventLogSettings
    /** Home: its id, and its database. */
    home: string
    homeDb: Database
    cell: string
    counts: IntakeCounts
  },
): CellWorkers {
  const { config, logger } = parts
  const { metrics, eventLog, home, homeDb, cell, counts } = shared
  const hasRole = (role: (typeof config.roles)[number]) => config.roles.includes(role)
  const isWorker = hasRole('dispatcher') || hasRole('realtime')
  const { onChange } = parts
  const engine: Engine = buildEngine(parts, {
    ...{ metrics, isWorker },
    ...(onChange && { onChange: (change: Invalidation) => passChange(change, engine.pulls, onChange) }),
    onNotifyFailed: (error) =>
      logger.warn({ err: error }, 'notification failed in a cell: see docs/operations/cells.md, a cell that is away'),
  })
  const { lease, dispatcher, dispatchers, realtime, router, relay, notifier, replayWorker, pulls, notify } = engine
  const taking = { eventLog, home, self: cell, counts, onQueued: notify }
  const intake = hasRole('dispatcher') ? buildAppIntake(parts, taking) : undefined
  const noticeWorker = buildCellNoticeWorker(parts, { home: homeDb, isTrusted: lease.isTrusted })
  const alertWorker = buildCellAlertWorker(parts)
  const housekeeping = [...engine.housekeeping, noticeWorker, alertWorker]
  const running: Promise<void>[] = []
  return {
    ...{ dispatcher, router, pulls, relay, noticeWorker, alertWorker, notify },
    isLive: (withinMs) => notifier.isLive(withinMs),
    start: () => {
      engine.start(running)
      if (intake) running.push(intake.run())
      if (hasRole('maintenance')) running.push(...housekeeping.map((item) => item.run()))
    },
    stop: async () => {
      for (const worker of [router, replayWorker, pulls.waits, ...housekeeping]) worker.stop()
      for (const worker of [relay, intake]) worker?.stop()
      await Promise.all([...dispatchers.map((each) => each.stop()), realtime.watch?.stop()])
      lease.stop()
      await notifier.stop()
      await Promise.all(running)
      await realtime.client?.close()
      if (isWorker && !dispatchers.some((item) => item.mayLeak()))
        await lease
          .end()
          .catch((err) =>
            logger.warn({ err }, 'lease of a cell not ended: see docs/operations/cells.md, a cell that is away'),
          )
    },
  }
}

/** The rows that pulls wait for are in the cell; what processes cache is of both. */
function passChange(change: Invalidation, { waits }: PullDeps, onChange: (change: Invalidation) => void): void {
  const isOfPull = change.startsWith('w:')
  if (isOfPull) waits.notify(change.slice(2))
  if (change === '*') waits.notify()
  if (!isOfPull) onChange(change)
}

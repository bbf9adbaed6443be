import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { Loop } from '../../base/rounds.ts'
import { incidentSweep } from '../../delivery/incident/alert.store.ts'
import { workerSweep } from '../../delivery/worker.store.ts'
import { eventSweeps } from '../../event/sweeps.ts'
import { httpSweeps } from '../../http/sweeps.ts'
import { listOwnRetentions } from '../../identity/account/limit/own-retention.store.ts'
import { identitySweeps } from '../../identity/sweeps.ts'
import { oauthSweeps } from '../../oauth/sweeps.ts'
import { deleteOldSums } from '../../operations/activity/activity-sum.store.ts'
import { skewSweep } from '../../operations/health/process-skew.store.ts'
import { decideOwnEdges } from '../../postgres/own-retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type Sweep, type SweepContext, sweepBatches } from '../../postgres/sweep.ts'
import { provisioningSweeps } from '../../provisioning/sweeps.ts'
import { realtimeSweeps } from '../../realtime/sweeps.ts'
import { webhookSweeps } from '../../webhook/sweeps.ts'
import type { Config } from '../config/config.ts'
import { buildReencryptionSweeps } from './reencrypt.ts'

/** Interval between sweeps, in milliseconds. */
const PERIOD_MS = 60_000

const BATCH_SIZE = 1_000

const DAY_MS = 24 * 3_600_000

export interface MaintenanceDeps {
  db: Database
  clock: Clock
  logger: Logger
  config: Pick<Config, 'webhookLedgerRetentionDays' | 'auditRetentionDays'>
  keyring: Keyring
  workerId: string
  /** Whether the clock is trusted; otherwise nothing is swept. */
  isTrusted: () => boolean
  onSwept?: (report: SweepReport) => void
}

/** Rows that one sweep removed or repaired, by the counts of its steps. */
export type SweepReport = Record<string, number>

/** Counts of a sweep other than 0, in the case of log fields. */
function toLogFields(report: SweepReport): Record<string, number> {
  const done = Object.entries(report).filter(([, count]) => count > 0)
  return Object.fromEntries(
    done.map(([name, count]) => [name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), count]),
  )
}

/** Sweeps: retention, expired keys, orphans, secrets under an old key. One for each process with the role `maintenance`. */
export interface Maintenance extends Loop {
  sweep(): Promise<SweepReport>
}

/** The steps of all features, in their order: events follow the dispatches that refer to them. */
function listSweeps(deps: Pick<MaintenanceDeps, 'keyring' | 'db'>): readonly Sweep[] {
  return [
    ...webhookSweeps,
    sweepBatches('activitySums', ({ db, now, limit }) => deleteOldSums(db, now, limit)),
    ...eventSweeps,
    ...[workerSweep, incidentSweep],
    ...httpSweeps,
    ...identitySweeps,
    ...oauthSweeps,
    ...realtimeSweeps,
    ...provisioningSweeps,
    skewSweep,
    ...buildReencryptionSweeps(deps.keyring, deps.db),
  ]
}

/** Builds the maintenance. A failed step is logged and made again by the next sweep; every process may run it. */
export function buildMaintenance(deps: MaintenanceDeps): Maintenance {
  const { clock, logger, isTrusted } = deps
  const stopping = new AbortController()
  const sweeps = listSweeps(deps)
  const walks: SweepContext['walks'] = new Map()

  /** Checked before each step and batch: a clock may step during a sweep, which takes minutes. */
  const mayGoOn = () => !stopping.signal.aborted && isTrusted()

  async function runSweep(
    { counts, isBatched, run: runBatch, goesOn }: Sweep,
    context: SweepContext,
    report: SweepReport,
  ) {
    for (;;) {
      const done = await runBatch(context)
      for (const [index, name] of counts.entries()) report[name] = (report[name] ?? 0) + (done[index] ?? 0)
      const isLast = (done[0] ?? 0) < BATCH_SIZE && goesOn?.(context) !== true
      if (!isBatched || isLast || !mayGoOn()) return
    }
  }

  const buildReport = (): SweepReport =>
    Object.fromEntries(sweeps.flatMap(({ counts }) => counts.map((name) => [name, 0])))

  // The counts of all steps start at 0.
  deps.onSwept?.(buildReport())

  async function sweep(): Promise<SweepReport> {
    const context = buildContext(deps, walks)
    const report = buildReport()
    for (const sweep of sweeps) {
      if (!mayGoOn()) break
      try {
        await runSweep(sweep, context, report)
      } catch (error) {
        logger.error({ err: error, step: sweep.counts[0] }, 'maintenance failed: see docs/operations.md, maintenance')
      }
    }
    return report
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const report = await sweep()
      deps.onSwept?.(report)
      if (Object.values(report).some((count) => count > 0)) logger.info(toLogFields(report), 'maintenance')
      await clock.sleep(PERIOD_MS, stopping.signal)
    }
  }

  return { sweep, run, stop: () => stopping.abort() }
}

function buildContext(deps: MaintenanceDeps, walks: SweepContext['walks']): SweepContext {
  const { db, clock, config, keyring, workerId } = deps
  const now = clock.now()
  const before = (days: number) => new Date(now - days * DAY_MS)
  return {
    ...{ db, keyring, workerId, now: new Date(now), limit: BATCH_SIZE },
    ledgerBefore: before(config.webhookLedgerRetentionDays),
    readOwnEdges: once(async () =>
      decideOwnEdges(await listOwnRetentions(db), { now, serviceDays: config.webhookLedgerRetentionDays }),
    ),
    walks,
    // With 0 days entries are kept.
    auditBefore: config.auditRetentionDays === 0 ? new Date(0) : before(config.auditRetentionDays),
  }
}

/** A read that is made once; a failed one is made again. */
function once<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let value: Value | undefined
  return async () => (value ??= await read())
}

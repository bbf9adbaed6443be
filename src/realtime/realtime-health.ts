import { cacheFor } from '../base/cached.ts'
import type { Clock } from '../base/clock.ts'
import type { Database } from '../postgres/statement/database.ts'
import { readWatchFacts, type WatchFacts } from './watch/watch.store.ts'
import { PROBE_EVERY_MS } from './watch/watch.ts'

/** Maximum age of a process's report: three probes and their timeouts. */
const KNOWN_FOR_MS = 3 * PROBE_EVERY_MS + 5_000

/** Wait of a message from which on the component is degraded. */
const DEGRADED_AT_LAG_SECONDS = 300

const COUNT_LIMIT = 10_000

const LIFETIME_MS = 5_000

/** The health of the realtime component (docs/contract/realtime.md#health-probe). */
export interface RealtimeHealth {
  component: 'realtime'
  status: 'operational' | 'degraded' | 'down'
  checkedAt: Date
  /** Whether a provider is configured: with none of its settings given, the overall health omits the component. */
  isWanted: boolean
  details: {
    /** The names of the settings that are missing. */
    missing: readonly string[]
    last_success_at: string | null
    last_error: string | null
    last_error_at: string | null
    /** The status of the last refusal (4xx), which does not change the status of the component. */
    last_warning: number | null
    last_warning_at: string | null
    backlog: number
    oldest_pending_s: number
  }
}

const REQUIRED_COUNT = 4

/** Decides the health. `facts.status` null: no process watches the provider, so nothing is published. Pure. */
function decideRealtimeHealth(missing: readonly string[], facts: WatchFacts, now: Date): RealtimeHealth {
  const isLate = facts.oldestPendingS >= DEGRADED_AT_LAG_SECONDS
  const known = missing.length > 0 ? 'down' : (facts.status ?? 'down')
  return {
    component: 'realtime',
    status: known === 'operational' && isLate ? 'degraded' : known,
    checkedAt: now,
    isWanted: missing.length < REQUIRED_COUNT,
    details: {
      missing,
      last_success_at: facts.lastSuccessAt?.toISOString() ?? null,
      last_error: facts.lastError,
      last_error_at: facts.lastErrorAt?.toISOString() ?? null,
      last_warning: facts.lastWarningCode,
      last_warning_at: facts.lastWarningAt?.toISOString() ?? null,
      backlog: facts.backlog,
      oldest_pending_s: facts.oldestPendingS,
    },
  }
}

/** The messages that wait in a database. */
export async function readRealtimeWork(db: Database, now: Date): Promise<RealtimeWork> {
  const since = new Date(now.getTime() - KNOWN_FOR_MS)
  const { backlog, oldestPendingS } = await readWatchFacts(db, { since, now, limit: COUNT_LIMIT })
  return { backlog, oldestPendingS }
}

/** Messages that wait. */
export type RealtimeWork = Pick<WatchFacts, 'backlog' | 'oldestPendingS'>

function addWork(facts: WatchFacts, cells: readonly RealtimeWork[]): WatchFacts {
  const backlog = cells.reduce((sum, cell) => sum + cell.backlog, facts.backlog)
  const oldestPendingS = Math.max(facts.oldestPendingS, ...cells.map((cell) => cell.oldestPendingS))
  return { ...facts, backlog: Math.min(COUNT_LIMIT, backlog), oldestPendingS }
}

/** Builds the reader of the health, at most 5 s old: all callers of a process share one check. */
export function buildRealtimeHealth(deps: {
  db: Database
  clock: Pick<Clock, 'now'>
  /** The names of the settings that are missing. */
  missing: readonly string[]
  listCellWork: () => Promise<readonly RealtimeWork[]>
}): () => Promise<RealtimeHealth> {
  const { db, clock, missing } = deps
  return cacheFor(clock, LIFETIME_MS, async () => {
    const now = new Date(clock.now())
    const since = new Date(now.getTime() - KNOWN_FOR_MS)
    const facts = await readWatchFacts(db, { since, now, limit: COUNT_LIMIT })
    return decideRealtimeHealth(missing, addWork(facts, await deps.listCellWork()), now)
  })
}

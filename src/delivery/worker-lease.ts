import type { Clock } from '../base/clock.ts'
import type { DatabaseClock } from '../base/database-clock.ts'
import type { Database } from '../postgres/statement/database.ts'
import { type OtherWorker, removeWorker, renewLease } from './worker.store.ts'

/**
 * How long a worker that says nothing keeps its claims: longer than an attempt may take (15 s) and its result may wait for
 * a database that pauses.
 */
export const LEASE_MS = 30_000

/** How long the lock of a worker must be gone: its connection may have broken while it works on. */
export const LOCK_LOST_MS = 2_000

/** How long a worker that joins others waits before its first claim: they renew their leases, and see it, each second. */
export const JOIN_WAIT_MS = 1_500

/** The lease of this worker, and what it sees of the others. */
export interface WorkerLease {
  /** Renews the lease. Returns the workers that are gone: their claims are to be made again. */
  renew(): Promise<string[]>
  /**
   * Whether this worker may claim and take back: not while the clocks of machine and database differ by over 10 s, since one
   * of them is wrong.
   */
  isTrusted(): boolean
  /** Whether other workers were alive at the last renewal; a worker that joins waits for `JOIN_WAIT_MS` first. */
  hasPeers(): boolean
  /** The workers that were gone at the last renewal, whichever policy asked for it. */
  gone(): readonly string[]
  /** Ends the lease of this worker, which holds no claim. */
  end(): Promise<void>
}

/** Dependencies of a lease. */
export interface WorkerLeaseDeps {
  db: Database
  clock: Clock
  /** The clock, where it follows the database's. */
  time?: DatabaseClock | undefined
  workerId: string
  /** Whether the connection that holds the lock of this worker is alive. */
  hasLock: () => boolean
}

/**
 * Builds the lease of this worker. Another worker is gone when its lease ended, or when its lock was lost for
 * `LOCK_LOST_MS`: a process that is killed loses its lock at once. For the length of a lease after a step of the database's
 * clock no lease counts as ended: the living renew theirs by the new time.
 */
export function buildWorkerLease({ db, clock, time, workerId, hasLock }: WorkerLeaseDeps): WorkerLease {
  let lostSince = new Map<string, number>()
  let peers = 0
  let gone: readonly string[] = []
  let isKnown = false

  async function look(): Promise<OtherWorker[]> {
    const nowMs = clock.now()
    const until = new Date(nowMs + LEASE_MS)
    const sentAtMs = time?.monotonicMs() ?? 0
    const renewed = await renewLease(db, { workerId, until, hasLock: hasLock(), now: new Date(nowMs) })
    const { others, databaseMs } = renewed
    time?.observe({ sentAtMs, receivedAtMs: time.monotonicMs(), databaseMs })
    const hasStepped = time !== undefined && time.stepAgeMs() < LEASE_MS
    return hasStepped ? others.map((other) => ({ ...other, isExpired: false })) : others
  }

  const isTrusted = () => time?.verdict() !== 'distrusted'

  return {
    renew: async () => {
      // Of two that come at once at least one sees the other: both are written before the second look.
      if (!isKnown) await look()
      isKnown = true
      const others = await look()
      const nowMs = time?.monotonicMs() ?? clock.now()
      lostSince = findLockLost(others, lostSince, nowMs)
      const found = others.filter((other) => isGone(other, lostSince, nowMs)).map((other) => other.workerId)
      gone = found
      peers = others.length - found.length
      return isTrusted() ? found : []
    },
    isTrusted,
    hasPeers: () => peers > 0,
    gone: () => gone,
    end: () => removeWorker(db, workerId),
  }
}

/** Since when each lock has been lost. Pure. */
function findLockLost(
  others: readonly OtherWorker[],
  before: ReadonlyMap<string, number>,
  nowMs: number,
): Map<string, number> {
  const lost = others.filter((other) => other.isLockLost)
  return new Map(lost.map(({ workerId }) => [workerId, Math.min(before.get(workerId) ?? nowMs, nowMs)]))
}

function isGone(worker: OtherWorker, lostSince: ReadonlyMap<string, number>, nowMs: number): boolean {
  const since = lostSince.get(worker.workerId)
  return worker.isExpired || (since !== undefined && nowMs - since >= LOCK_LOST_MS)
}

/** The duration of an attempt that was lost with its worker, ms: not known, and never longer than its claim held. Pure. */
export function measureLost(startedAt: Date, now: Date): number {
  return Math.min(LEASE_MS, Math.max(0, now.getTime() - startedAt.getTime()))
}

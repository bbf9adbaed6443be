import type { Clock } from '../base/clock.ts'
import type { DatabaseClock } from '../base/database-clock.ts'
import type { Database } from '../postgres/statement/database.ts'
import { type OtherWorker, removeWorker, renewLease } from './worker.store.ts'

/** Lease of a silent worker: longer than an attempt (15 s) and the wait of its result for a stalled database. */
export const LEASE_MS = 30_000

/** Time for which the lock of a worker must be lost: its connection may have broken while it still works. */
export const LOCK_LOST_MS = 2_000

/** Wait of a joining worker before its first claim: the others renew their leases, and see it, each second. */
export const JOIN_WAIT_MS = 1_500

export interface WorkerLease {
  /** Renews the lease. Returns the lost workers, whose claims must be repeated. */
  renew(): Promise<string[]>
  /** Whether this worker may claim: false while the clocks of machine and database differ by over 10 s. */
  isTrusted(): boolean
  /** Whether other workers were alive at the last renewal; a joining worker waits for `JOIN_WAIT_MS` first. */
  hasPeers(): boolean
  /** The workers lost at the last renewal, for every policy. */
  gone(): readonly string[]
  /** Ends the lease of this worker, which has no claims. */
  end(): Promise<void>
}

export interface WorkerLeaseDeps {
  db: Database
  clock: Clock
  /** The clock, if it follows the database's. */
  time?: DatabaseClock | undefined
  workerId: string
  /** Whether the connection that holds the lock of this worker is alive. */
  hasLock: () => boolean
}

/**
 * Builds the lease of this worker. Another worker is lost when its lease has expired, or its lock has been lost for
 * `LOCK_LOST_MS`: a killed process loses its lock at once. For the length of a lease after a step of the database's
 * clock no lease counts as expired, so that live workers can renew theirs by the new time.
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
      // Of two concurrent ones at least one sees the other: both rows are written before the second read.
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
    end: async () => void (await removeWorker(db, { workerId })),
  }
}

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

/** Duration of an attempt lost with its worker, ms: real duration unknown, capped at the lease. Pure. */
export function measureLost(startedAt: Date, now: Date): number {
  return Math.min(LEASE_MS, Math.max(0, now.getTime() - startedAt.getTime()))
}

import { SKEW_REPORTED_MS, SKEW_TRUSTED_MS } from '../../base/database-clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listProcessSkews, type ProcessSkew } from './process-skew.store.ts'

/** Age of a report after which its process has stopped, or its machine has the right time again. */
const SKEW_KNOWN_MS = 30_000

const PROCESS_LIMIT = 100

/** The facts of the component. */
export interface ClockFacts {
  /** Processes whose machine is more than two seconds off the database's clock; 100 means that many or more. */
  skewed_processes: number
  /** Processes more than ten seconds off, which claim and delete nothing. */
  resting_processes: number
  /** Largest skew: seconds ahead of the database, negative behind. 0 without any. */
  largest_skew_s: number
  remedy: string | null
}

const REMEDY =
  'Synchronize the clocks of all machines, that of the database among them (chrony, systemd-timesyncd): see docs/operations.md, clock skew.'

/** Evaluates the reports. Pure. */
export function decideClockFacts(skews: readonly ProcessSkew[]): ClockFacts {
  const off = skews.filter(({ skewMs }) => Math.abs(skewMs) > SKEW_REPORTED_MS)
  const furthestMs = off.reduce((most, { skewMs }) => (Math.abs(skewMs) > Math.abs(most) ? skewMs : most), 0)
  return {
    skewed_processes: off.length,
    resting_processes: off.filter(({ skewMs }) => Math.abs(skewMs) > SKEW_TRUSTED_MS).length,
    largest_skew_s: Math.round(furthestMs / 100) / 10,
    remedy: off.length > 0 ? REMEDY : null,
  }
}

/** The processes that are off at `now`. Later rows were written before the database's clock was set back. */
function listSkewed(db: Database, now: Date): Promise<ProcessSkew[]> {
  const [since, until] = [-SKEW_KNOWN_MS, SKEW_KNOWN_MS].map((ms) => new Date(now.getTime() + ms)) as [Date, Date]
  return listProcessSkews(db, { since, until, limit: PROCESS_LIMIT })
}

/** Reads the facts of the component. */
export async function readClockFacts(db: Database, now: Date): Promise<ClockFacts> {
  return decideClockFacts(await listSkewed(db, now))
}

/** `degraded` while a process is off (docs/contract/delivery.md#clock). */
export function decideClockHealth(facts: ClockFacts): 'operational' | 'degraded' {
  return facts.skewed_processes > 0 ? 'degraded' : 'operational'
}

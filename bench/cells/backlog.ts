import { availableParallelism, loadavg } from 'node:os'
import type { DatabasePool } from '../../src/postgres/statement/database.ts'

/** Work left of a side, over its databases. */
export interface Backlog {
  /** Events that are not routed yet. */
  unrouted: number
  /** Deliveries that are due and not claimed: no attempt failed. */
  due: number
  /** Deliveries whose attempt is under way, or ended and not recorded yet. */
  claimed: number
  /** Deliveries that were given back for a fault of the process and wait for its pause (`giving-back.ts`). */
  givenBack: number
  /** Deliveries whose attempt failed: the retry schedule is a minute at least. */
  retried: number
  /** Failure classes of these attempts. */
  errors: string[]
}

const BACKLOG = `
  select (select count(*) from event_queue) as unrouted,
    count(*) filter (where last_error is null and lease_owner is null and next_attempt_at <= now()) as due,
    count(*) filter (where last_error is null and lease_owner is not null) as claimed,
    count(*) filter (where last_error is null and lease_owner is null and next_attempt_at > now()) as "givenBack",
    count(last_error) as retried,
    coalesce(array_agg(distinct last_error) filter (where last_error is not null), '{}') as errors
  from webhook_dispatch_open`

/** Reads it. */
export async function readBacklog(pools: readonly DatabasePool[]): Promise<Backlog> {
  const read = pools.map(async ({ pool }) => (await pool.query<Backlog>(BACKLOG)).rows[0] as Backlog)
  return (await Promise.all(read)).reduce((sum, each) => ({
    unrouted: sum.unrouted + each.unrouted,
    due: sum.due + each.due,
    claimed: sum.claimed + each.claimed,
    givenBack: sum.givenBack + each.givenBack,
    retried: sum.retried + each.retried,
    errors: [...new Set([...sum.errors, ...each.errors])].sort(),
  }))
}

/** Parts of it, by the reason why they wait. Pure. */
export function describeBacklog({ unrouted, due, claimed, givenBack, retried, errors }: Backlog): string {
  const parts: [number, string][] = [
    [retried, `wait for the retry of a failed attempt (${errors.join(', ')})`],
    [givenBack, 'were given back for a fault of the process'],
    [claimed, 'are claimed: their attempt is under way or not recorded'],
    [due, 'are due: no process has claimed them'],
    [unrouted, 'are events that are not routed'],
  ]
  const said = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  return said.length === 0 ? 'nothing waits in the databases' : said.join('; ')
}

/** The load of the machine beside its cores. */
export function describeLoad(): string {
  return `load of the machine ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} cores`
}

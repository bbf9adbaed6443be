import type { Database } from '../postgres/database.ts'
import { type Fragment, joinFragments } from '../postgres/fragment.ts'

/** What routing one batch of events did for one policy. */
export interface RoutedRows {
  /** The rows that this worker claimed, as the policy's part `_work` returned them. */
  work: unknown[]
  /** How many rows were queued, those included. */
  opened: number
  /** When the next row that nobody holds is due, besides those of this batch; null when none waits. */
  nextDueAt: Date | null
}

/** What one batch of the router did. */
export interface RoutedBatch {
  events: number
  /** The last of the events, to go on behind it; null when there was none. */
  last: string | null
  byPolicy: RoutedRows[]
}

/** Which events a batch takes. */
export interface RoutingRequest {
  /** Behind this event, in the order of ids. */
  after: string
  /** How many at most. */
  limit: number
  now: Date
}

const TAKE_EVENTS = `
  taken as (
    delete from event_queue where event_id = any(array(
      select event_id from event_queue where event_id > $1 order by event_id limit $2 for update skip locked))
    returning event_id
  ), routed as (
    update event_occurrence set routed_at = $3 where document_id = any(array(select event_id from taken)) returning *
  )`

/**
 * Routes one batch of events to every policy, in one statement: takes the events from their queue, oldest first and without
 * waiting for those that another process takes, and runs the part of each policy. Any number of processes may do this at
 * once.
 */
export async function routeBatch(
  db: Database,
  request: RoutingRequest,
  policies: readonly { name: string; part: Fragment }[],
): Promise<RoutedBatch> {
  const take: Fragment = { name: 'route', text: TAKE_EVENTS, values: [request.after, request.limit, request.now] }
  const query = joinFragments<Record<string, unknown>>([take, ...policies.map(({ part }) => part)], (texts) => {
    const counts = policies.flatMap(({ name }) => [
      `(select coalesce(json_agg(work), '[]') from ${name}_work) as ${name}_work`,
      `(select count(*)::int from ${name}_opened) as ${name}_opened`,
      `(select due_at from ${name}_next) as ${name}_next`,
    ])
    return `with ${texts.join(', ')}
      select (select count(*)::int from taken) as events, (select max(event_id::text) from taken) as last,
        ${counts.join(', ')}`
  })
  const { rows } = await db.executeQuery(query)
  const [row = {}] = rows
  return {
    events: row.events as number,
    last: row.last as string | null,
    byPolicy: policies.map(({ name }) => ({
      work: row[`${name}_work`] as unknown[],
      opened: row[`${name}_opened`] as number,
      nextDueAt: row[`${name}_next`] as Date | null,
    })),
  }
}

import type { Database } from '../postgres/database.ts'
import { type Fragment, joinFragments } from '../postgres/fragment.ts'
import type { RoutingPart } from './policy.ts'

/** What routing one batch of events did for one policy. */
export interface RoutedRows {
  /** The rows that this worker claimed, as the policy's part `_work` returned them. */
  work: unknown[]
  /** How many rows were queued, those included. */
  opened: number
  /** When the next row is due that nobody holds and whose group is not blocked; null when none waits. */
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

/** The part of the routing statement of one policy, with its name. */
export interface NamedPart {
  name: string
  part: RoutingPart
}

const listParts = (policies: readonly NamedPart[]) => policies.map(({ part }) => part.written)

/** The columns that answer for the policies. */
const listAnswers = (policies: readonly NamedPart[]) =>
  policies.flatMap(({ name }) => [
    `(select coalesce(json_agg(work), '[]') from ${name}_work) as ${name}_work`,
    `(select count(*)::int from ${name}_opened) as ${name}_opened`,
    `(select due_at from ${name}_next) as ${name}_next`,
  ])

function readRouted(policies: readonly NamedPart[], row: Record<string, unknown>): RoutedRows[] {
  return policies.map(({ name }) => ({
    work: row[`${name}_work`] as unknown[],
    opened: row[`${name}_opened`] as number,
    nextDueAt: row[`${name}_next`] as Date | null,
  }))
}

/**
 * Routes one batch of events to every policy, in one statement: takes the events from their queue, oldest first and without
 * waiting for those that another process takes, and runs the part of each policy. Any number of processes may do this at
 * once.
 */
export async function routeBatch(
  db: Database,
  request: RoutingRequest,
  policies: readonly NamedPart[],
): Promise<RoutedBatch> {
  const take: Fragment = { name: 'route', text: TAKE_EVENTS, values: [request.after, request.limit, request.now] }
  const query = joinFragments<Record<string, unknown>>([take, ...listParts(policies)], ([taken = '', ...written]) => {
    const parts = policies.flatMap(({ name, part }, index) => [
      `${name}_matched as (${part.matched})`,
      written[index] ?? '',
    ])
    return `with ${[taken, ...parts].join(', ')}
      select (select count(*)::int from taken) as events, (select max(event_id::text) from taken) as last,
        ${listAnswers(policies).join(', ')}`
  })
  const { rows } = await db.executeQuery(query)
  const [row = {}] = rows
  return { events: row.events as number, last: row.last as string | null, byPolicy: readRouted(policies, row) }
}

/** Rows that events are routed to as they are recorded at most; beyond, they are left to the router. */
export const INLINE_ROWS = 64

/**
 * The parts of a statement that routes events while it records them: it has `routed`, and reads `(select is_inline from
 * inline)`, whether it did. `head` is its part with values, and `write` gets its parts and the columns that answer.
 */
export async function routeInline(
  db: Database,
  head: Fragment,
  policies: readonly NamedPart[],
  write: (parts: readonly string[], answers: readonly string[]) => string,
): Promise<{ row: Record<string, unknown>; byPolicy: RoutedRows[] }> {
  const query = joinFragments<Record<string, unknown>>(
    [head, ...listParts(policies)],
    ([recorded = '', ...written]) => {
      const found = policies.map(
        ({ name, part }) =>
          `${name}_found as materialized (select * from (${part.matched}) m limit ${INLINE_ROWS + 1})`,
      )
      const counts = policies.map(({ name }) => `(select count(*) <= ${INLINE_ROWS} from ${name}_found)`)
      const parts = policies.flatMap(({ name }, index) => [
        `${name}_matched as (select * from ${name}_found where (select is_inline from inline))`,
        written[index] ?? '',
      ])
      const inline = `inline as materialized (select ${counts.join(' and ')} as is_inline)`
      return write([recorded, ...found, inline, ...parts], listAnswers(policies))
    },
  )
  const { rows } = await db.executeQuery(query)
  const [row = {}] = rows
  return { row, byPolicy: readRouted(policies, row) }
}

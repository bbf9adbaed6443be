import type { Database } from '../../postgres/statement/database.ts'
import { buildJoin, type Fragment, fragment } from '../../postgres/statement/fragment.ts'
import type { RoutingPart } from '../policy.ts'

export interface RoutedRows {
  /** The rows that this worker claimed, as the policy's part `_work` returned them. */
  work: unknown[]
  /** Number of queued rows, including claimed ones. */
  opened: number
  /** Due time of the next unclaimed row whose group is not blocked; null when none waits. */
  nextDueAt: Date | null
}

export interface RoutedBatch {
  events: number
  /** The last of the events, to continue after it; null without any. */
  last: string | null
  /** Whether the rows of some events are written in parts (`routeFanOut`). */
  isAside: boolean
  byPolicy: RoutedRows[]
}

export interface RoutingRequest {
  /** After this event, in the order of ids. */
  after: string
  limit: number
  now: Date
}

const takeEvents = fragment<Pick<RoutingRequest, 'after' | 'limit'>>(
  'route',
  `
  taken as (
    delete from event_queue where event_id = any(array(
      select event_id from event_queue where event_id > $after order by event_id limit $limit for update skip locked))
    returning event_id
  ), routed as materialized (
    select * from event_occurrence where document_id = any(array(select event_id from taken))
  )`,
)

/** The part that marks the events that `events` selects as routed, at `now`. */
const markRouted = (events: string, now: string) => `
  marked as (update event_occurrence set routed_at = ${now} where document_id = any(array(${events})))`

/** Marks the taken events, except those set aside. */
const markTaken = fragment<{ now: Date }>(
  'mark',
  markRouted('select event_id from taken where event_id <> all(array(select event_id from aside))', '$now'),
)

/** The events of a fan-out to mark; the policy defines the rest of that part. */
const markedAt = fragment<{ now: Date }>('fan-out', '$now::timestamptz')

/** Each of the three statements is composed once for the same parts. */
const [joinBatch, joinFanOut, joinInline] = [buildJoin(), buildJoin(), buildJoin()]

/** The part of the routing statement of one policy, with its name. */
export interface NamedPart {
  name: string
  part: RoutingPart
}

const listParts = (policies: readonly NamedPart[]) => policies.map(({ part }) => part.written)

/** The events that the policies set aside, as a query. */
const listAside = (policies: readonly NamedPart[]) =>
  policies
    .filter(({ part }) => part.rowsOfEvent !== undefined)
    .map(({ name }) => `select event_id from ${name}_aside`)
    .join(' union all ') || 'select event_id from taken where false'

const listAnswers = (policies: readonly { name: string }[]) =>
  policies.flatMap(({ name }) => [
    `(select coalesce(json_agg(work), '[]') from ${name}_work) as ${name}_work`,
    `(select count(*)::int from ${name}_opened) as ${name}_opened`,
    `(select due_at from ${name}_next) as ${name}_next`,
  ])

function readRouted(policies: readonly { name: string }[], row: Record<string, unknown>): RoutedRows[] {
  return policies.map(({ name }) => ({
    work: row[`${name}_work`] as unknown[],
    opened: row[`${name}_opened`] as number,
    nextDueAt: row[`${name}_next`] as Date | null,
  }))
}

/** Routes the oldest events that no other process has locked to every policy, in one statement. */
export async function routeBatch(
  db: Database,
  request: RoutingRequest,
  policies: readonly NamedPart[],
): Promise<RoutedBatch> {
  const query = joinBatch<Record<string, unknown>>(
    [takeEvents(request), markTaken(request), ...listParts(policies)],
    ([take = '', mark = '', ...written]) => {
      const parts = policies.flatMap(({ name, part }, index) => [
        `${name}_matched as (${part.matched})`,
        written[index] ?? '',
      ])
      const aside = `aside as materialized (${listAside(policies)})`
      return `with ${[take, ...parts, aside, mark].join(', ')}
      select (select count(*)::int from taken) as events, (select max(event_id::text) from taken) as last,
        exists (select from aside) as is_aside, ${listAnswers(policies).join(', ')}`
    },
  )
  const { rows } = await db.executeQuery(query)
  const [row = {}] = rows
  const { events, last, is_aside: isAside } = row as { events: number; last: string | null; is_aside: boolean }
  return { events, last, isAside, byPolicy: readRouted(policies, row) }
}

/**
 * Writes a part of the rows of an event that was set aside, in one statement; the last part marks the event as routed.
 * Undefined when none is set aside, or others write it.
 */
export async function routeFanOut(
  db: Database,
  { name, written, now }: { name: string; written: Fragment; now: Date },
): Promise<RoutedRows | undefined> {
  const query = joinFanOut<Record<string, unknown>>(
    [markedAt({ now }), written],
    ([at = '', parts = '']) => `
      with ${parts}, ${markRouted(`select event_id from ${name}_reached where is_last`, at)}
      select exists (select from ${name}_reached) as is_found, ${listAnswers([{ name }]).join(', ')}`,
  )
  const { rows } = await db.executeQuery(query)
  const [row = {}] = rows
  return row.is_found ? readRouted([{ name }], row)[0] : undefined
}

/** Maximum number of rows routed in the recording statement; beyond it, events are left to the router. */
export const INLINE_ROWS = 64

/**
 * The parts of a statement that routes events while it records them: it has `routed`, and reads
 * `(select is_inline from inline)`, whether it routed. `head` is its part with values, and `write` gets its parts and
 * the result columns.
 */
export async function routeInline(
  db: Database,
  head: Fragment,
  policies: readonly NamedPart[],
  write: (parts: readonly string[], answers: readonly string[]) => string,
): Promise<{ row: Record<string, unknown>; byPolicy: RoutedRows[] }> {
  const query = joinInline<Record<string, unknown>>([head, ...listParts(policies)], ([recorded = '', ...written]) => {
    // Below the limit of a policy for one event, so that it sets none aside.
    const mostRows = ({ rowsOfEvent = INLINE_ROWS }: RoutingPart) => Math.min(INLINE_ROWS, rowsOfEvent)
    const found = policies.map(
      ({ name, part }) =>
        `${name}_found as materialized (select * from (${part.matched}) m limit ${mostRows(part) + 1})`,
    )
    const counts = policies.map(({ name, part }) => `(select count(*) <= ${mostRows(part)} from ${name}_found)`)
    const parts = policies.flatMap(({ name }, index) => [
      `${name}_matched as (select * from ${name}_found where (select is_inline from inline))`,
      written[index] ?? '',
    ])
    const inline = `inline as materialized (select ${counts.join(' and ')} as is_inline)`
    return write([recorded, ...found, inline, ...parts], listAnswers(policies))
  })
  const { rows } = await db.executeQuery(query)
  const [row = {}] = rows
  return { row, byPolicy: readRouted(policies, row) }
}

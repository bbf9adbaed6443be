import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement, statement, testStatement } from '../../postgres/statement/statement.ts'

/** Kinds of counted activity. */
export type ActivityKind = 'sign-in' | 'realtime' | 'connection'

/** The measure of which a bucket has the highest value, not the sum. */
export const PEAK = 'peak'

/** A sum of one bucket. */
export interface ActivitySum {
  at: Date
  measure: string
  count: number
}

const begin = testStatement<{ kind: ActivityKind; since: Date }>(`
  insert into activity_counted (kind, until) values ($kind, $since) on conflict (kind) do nothing`)

const lock = statement<{ until: Date }, { kind: ActivityKind }>(
  'select until from activity_counted where kind = $kind for update skip locked',
)

/** The instant up to which a kind is counted, locked; undefined while another process counts. At first `since`. */
export async function lockCounted(db: Database, input: { kind: ActivityKind; since: Date }): Promise<Date | undefined> {
  const [row] = await lock(db, { kind: input.kind })
  if (row) return row.until
  return (await begin(db, input)) ? input.since : undefined
}

const add = changeStatement<{
  kind: ActivityKind
  at: readonly Date[]
  measures: readonly string[]
  counts: readonly number[]
  until: Date
}>(`
  with added as (
    insert into activity_sum (kind, width, at, measure, count)
    select $kind, w.width, date_bin(w.step, c.at, timestamptz 'epoch'), c.measure,
      case when c.measure = '${PEAK}' then max(c.count) else sum(c.count) end
    from unnest($at::timestamptz[], $measures::text[], $counts::bigint[]) c (at, measure, count)
    cross join (values ('minute', interval '1 minute'), ('hour', interval '1 hour'), ('quarter', interval '6 hours'),
      ('day', interval '1 day')) w (width, step)
    group by 2, 3, 4 order by 2, 3, 4
    on conflict (kind, width, at, measure) do update set count = case when excluded.measure = '${PEAK}'
      then greatest(activity_sum.count, excluded.count) else activity_sum.count + excluded.count end
  )
  update activity_counted set until = $until where kind = $kind`)

/** Adds what was counted up to `until` to the sums of every width. */
export async function addSums(
  db: Database,
  { kind, minutes, until }: { kind: ActivityKind; minutes: readonly ActivitySum[]; until: Date },
): Promise<void> {
  await add(db, {
    kind,
    at: minutes.map(({ at }) => at),
    measures: minutes.map(({ measure }) => measure),
    counts: minutes.map(({ count }) => count),
    until,
  })
}

/** The sums of a width since `start`. */
export const readSums = statement<ActivitySum, { kind: ActivityKind; width: string; start: Date }>(`
  select at, measure, count::float8 as count from activity_sum where kind = $kind and width = $width and at >= $start`)

const deleteOf = (width: string, before: string) => `
    delete from activity_sum where ctid = any(array(
      select ctid from activity_sum where width = '${width}' and at < ${before} order by at limit $limit
      for update skip locked))
    returning 1`

const deleteOld = statement<
  { deleted: number },
  { minutes: Date; hours: Date; quarters: Date; days: Date; limit: number }
>(`
  with minutes as (${deleteOf('minute', '$minutes')}),
  hours as (${deleteOf('hour', '$hours')}),
  quarters as (${deleteOf('quarter', '$quarters')}),
  days as (${deleteOf('day', '$days')})
  select greatest((select count(*) from minutes), (select count(*) from hours), (select count(*) from quarters),
    (select count(*) from days))::int as deleted`)

/** Retention of the sums of each width, in hours: the range that it serves, and some more. */
const KEPT_HOURS = { minutes: 2, hours: 25, quarters: 8 * 24, days: 31 * 24 }

/** Deletes sums outside every range, up to `limit` of a width. Returns the number of the width with the most. */
export async function deleteOldSums(db: Database, now: Date, limit: number): Promise<number> {
  const before = (hours: number) => new Date(now.getTime() - hours * 3_600_000)
  const { minutes, hours, quarters, days } = KEPT_HOURS
  const ends = { minutes: before(minutes), hours: before(hours), quarters: before(quarters), days: before(days) }
  const [row] = await deleteOld(db, { ...ends, limit })
  return row?.deleted ?? 0
}

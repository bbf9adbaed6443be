import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement, valueStatement } from '../../postgres/statement/statement.ts'

/** Widths of the sums of a breakdown, the narrowest first, as PostgreSQL writes them. */
const WIDTHS = { five_minutes: '5 minutes', hour: '1 hour', day: '1 day' } as const

type Width = keyof typeof WIDTHS

/** SQL of the start of the sum in which the instant `at` is counted. Pure. */
export const startOf = (width: Width, at: string) => `date_bin('${WIDTHS[width]}', ${at}, timestamptz 'epoch')`

/** End of an insert into the breakdown, which adds to existing sums. */
export const ADD_UP = `on conflict (subject, at, width, measure) do update
      set attempts = webhook_breakdown.attempts + excluded.attempts, failed = webhook_breakdown.failed + excluded.failed`

/** Sums of `width` from before `$before`, by the index of their time; `found` is for `any(array(...))`. */
const oldOf = (width: Width) => `
      select ctid from webhook_breakdown where width = '${width}' and at < $before order by at limit $limit
      for update skip locked`

/** Written in the order of keys, so that no two processes wait for each other. */
const widen = (from: Width, to: Width) =>
  valueStatement<number, { before: Date; limit: number }>(`
  with taken as (
    delete from webhook_breakdown where ctid = any(array(${oldOf(from)})) returning *
  ), widened as (
    insert into webhook_breakdown (subject, at, width, measure, attempts, failed)
    select subject, ${startOf(to, 'at')}, '${to}', measure, sum(attempts), sum(failed)
    from taken group by 1, 2, 4 order by 1, 2, 4
    ${ADD_UP}
  )
  select count(*)::int as moved from taken`)

const widenToHours = widen('five_minutes', 'hour')
const widenToDays = widen('hour', 'day')

const deleteDays = changeStatement<{ before: Date; limit: number }>(
  `delete from webhook_breakdown where ctid = any(array(${oldOf('day')}))`,
)

const widenWebhooks = valueStatement<number, { before: Date; limit: number }>(`
  with taken as (
    delete from webhook_outcome_hour where ctid = any(array(
      select ctid from webhook_outcome_hour where hour < $before order by hour limit $limit for update skip locked))
    returning *
  ), widened as (
    insert into webhook_outcome_day (webhook, day, event, attempts, failed)
    select webhook, ${startOf('day', 'hour')}, event, sum(success + retrying + failed), sum(retrying + failed)
    from taken group by 1, 2, 3 order by 1, 2, 3
    on conflict (webhook, day, event) do update
      set attempts = webhook_outcome_day.attempts + excluded.attempts, failed = webhook_outcome_day.failed + excluded.failed
  )
  select count(*)::int as moved from taken`)

const deleteDaysOfWebhooks = deletionOfOld('webhook_outcome_day', { key: 'ctid', time: 'day' })

/** End of the sums of each width. */
interface WidenBefore {
  fiveMinutes: Date
  hours: Date
  days: Date
}

/** Widens up to `limit` sums of each width from before its instant, and deletes days. Returns the largest number. */
export async function widenBreakdowns(db: Database, before: WidenBefore, limit: number): Promise<number> {
  return Math.max(
    await widenToHours(db, { before: before.fiveMinutes, limit }),
    await widenToDays(db, { before: before.hours, limit }),
    await deleteDays(db, { before: before.days, limit }),
    await widenWebhooks(db, { before: before.hours, limit }),
    await deleteDaysOfWebhooks(db, before.days, limit),
  )
}

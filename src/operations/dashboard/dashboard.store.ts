import type { AccountId } from '../../base/id.ts'
import type { EventTypeRecord } from '../../event/catalogue/catalogue.store.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { EVERYTHING } from '../../webhook/activity/outcome-keys.ts'
import {
  type DispatchRecord,
  OF_DISPATCH,
  type StoredDispatch,
  toDispatchRecord,
} from '../../webhook/ledger/dispatch.store.ts'
import { HEALTH_WINDOW_MS } from '../health/webhook-out.ts'

/** Deliveries by the hour of their creation. */
export interface DeliveriesOfHour {
  hour: Date
  success: number
  failed: number
}

/** The facts of the dashboard, all of one instant. */
export interface Summary {
  /** Deliveries of the last 24 h by status, with zeros. */
  deliveries: Record<'pending' | 'retrying' | 'success' | 'exhausted' | 'failed' | 'cancelled', number>
  /** Whether `deliveries` and `hours` count all of them. */
  isComplete: boolean
  /** Deliveries that were given up in these 24 hours, and in the 24 hours before. */
  exhausted: { last_24h: number; before_24h: number }
  /** Webhooks that are not deleted: active ones, inactive ones, and the inactive ones that the service disabled. */
  webhooks: { active: number; inactive: number; auto_disabled: number }
  /** The compared columns of every row of the `event` table. */
  eventTypes: Pick<EventTypeRecord, 'internal' | 'accountScope' | 'method' | 'route' | 'source' | 'isActived'>[]
  /** The most recent deliveries that ended without success in the last 24 h. */
  recentFailures: DispatchRecord[]
  /** The last 24 h, oldest hour first, empty hours included. */
  hours: DeliveriesOfHour[]
}

/**
 * The deliveries of the last 24 hours, by the hour of their creation and by status: from the counts of minutes, so the
 * cost does not depend on the size of the ledger. The window starts with the minute of its first instant.
 */
const RECENT = `
  recent as materialized (
    select date_trunc('hour', minute) as hour, status, sum(deliveries) as deliveries,
      sum(deliveries) filter (where minute >= date_trunc('minute', $since::timestamptz)) as in_window
    from webhook_delivery_minute
    where minute >= least(date_trunc('minute', $since::timestamptz),
      date_trunc('hour', $now::timestamptz) - interval '23 hours')
    group by 1, 2
  )`

/** Deliveries of some accounts that the dashboard counts (docs/contract/delivery.md#dashboard). */
const DELIVERIES_LIMIT = 2_000

/** The delivery `d` is of an own account, and so is its webhook, which is looked up by its id. */
const OWNED = `d.account = own.account and (
    select not w.is_global and w.account = any($accounts::uuid[]) from webhook w where w.document_id = d.webhook)`

const FIRST_HOUR = "date_trunc('hour', $now::timestamptz) - interval '23 hours'"

/** The open or ended deliveries of each account in the series, the newest first, up to a limit, if `condition`. */
const newestOf = (table: string, condition = 'true') => `
  select made.* from unnest($accounts::uuid[]) as own (account) cross join lateral (
    select d.created_at, d.status from ${table} d
    where ${condition} and ${OWNED} and d.created_at >= least($since, ${FIRST_HOUR})
    order by d.created_at desc limit ${DELIVERIES_LIMIT + 1}) made
  limit ${DELIVERIES_LIMIT + 1}`

/**
 * Counts the deliveries of `$accounts`, which the counts of minutes do not distinguish: one by one up to a limit;
 * beyond it, ended ones from the sums of hours. Where these alone pass the limit, no ended delivery is read. Each table is
 * read separately: for both together PostgreSQL before 18 may sort all.
 */
const RECENT_OF_ACCOUNTS = `
  hours as materialized (
    select o.at, o.measure, sum(o.count) as deliveries
    from unnest($accounts::uuid[]) as own (account)
    cross join lateral (
      select at, measure, count from webhook_outcome
      where scope = own.account and width = 'hour' and at >= ${FIRST_HOUR}
        and measure in ('success', 'exhausted', 'failed') offset 0
    ) o
    group by 1, 2
  ),
  many as materialized (select coalesce(sum(deliveries), 0) > ${DELIVERIES_LIMIT} as is_many from hours),
  ended as materialized (${newestOf('webhook_dispatch_ended', 'not (select is_many from many)')}),
  open as materialized (${newestOf('webhook_dispatch_open')}),
  whole as materialized (
    select not (select is_many from many)
      and (select count(*) from ended) + (select count(*) from open) <= ${DELIVERIES_LIMIT} as is_complete
  ),
  recent as materialized (
    select date_trunc('hour', created_at) as hour, status, count(*) as deliveries,
      count(*) filter (where created_at >= $since) as in_window
    from (select * from ended where (select is_complete from whole) union all select * from open) counted group by 1, 2
    union all
    select at, measure, deliveries, deliveries from hours where not (select is_complete from whole)
  )`

/** Deliveries of `$scopes` that were given up, by when they ended: in the hours of the series, and in as many before. */
const EXHAUSTED = `
  select json_build_object('last_24h', coalesce(sum(o.count) filter (where o.at >= ${FIRST_HOUR}), 0)::bigint,
    'before_24h', coalesce(sum(o.count) filter (where o.at < ${FIRST_HOUR}), 0)::bigint)
  from unnest($scopes::uuid[]) as s (scope)
  cross join lateral (
    select at, count from webhook_outcome
    where scope = s.scope and width = 'hour' and at >= ${FIRST_HOUR} - interval '24 hours' and measure = 'exhausted'
    offset 0
  ) o`

const DELIVERIES = `
  select json_object_agg(s.status, s.deliveries) from (
    select s.status, coalesce(sum(r.in_window), 0)::bigint as deliveries
    from unnest(array['pending', 'retrying', 'success', 'exhausted', 'failed', 'cancelled']) as s (status)
    left join recent r on r.status = s.status
    group by s.status) s`

/** All webhooks: triggers count each change, so it reads a few rows at any number of them. */
const WEBHOOK_COUNTS = `
  select json_build_object('active', coalesce(sum(active), 0)::bigint, 'inactive', coalesce(sum(inactive), 0)::bigint,
    'auto_disabled', coalesce(sum(auto_disabled), 0)::bigint)
  from webhook_count`

/** The webhooks of `$accounts`. */
const WEBHOOK_COUNTS_OF_ACCOUNTS = `
  select json_build_object('active', count(*) filter (where is_actived), 'inactive', count(*) filter (where not is_actived),
    'auto_disabled', count(*) filter (where not is_actived and disabled_reason = 'consecutive-failures'))
  from webhook where deleted_at is null and not is_global and account = any($accounts::uuid[])`

const EVENT_TYPES = `
  select json_build_object('internal', internal, 'accountScope', account_scope, 'method', method, 'route', route,
    'source', source, 'isActived', is_actived)
  from event order by internal`

const FAILURES = `
  select row_to_json(d) from (
    select ${OF_DISPATCH} from webhook_dispatch d
    where d.status in ('exhausted', 'failed') and d.ended_at >= $since
    order by d.ended_at desc, d.document_id desc limit $failures) d`

const HOURS = `
  select json_build_object('hour', h.hour, 'success', coalesce(d.success, 0)::bigint,
    'failed', coalesce(d.failed, 0)::bigint)
  from generate_series(
    date_trunc('hour', $now::timestamptz) - interval '23 hours', date_trunc('hour', $now::timestamptz),
    interval '1 hour'
  ) as h (hour)
  left join (
    select hour, sum(deliveries) filter (where status = 'success') as success,
      sum(deliveries) filter (where status in ('exhausted', 'failed')) as failed
    from recent group by hour
  ) d on d.hour = h.hour
  order by h.hour`

/** In JSON an instant is text. */
type InJson<Found> = {
  [Name in keyof Found]: Found[Name] extends Date
    ? string
    : Found[Name] extends Date | null
      ? string | null
      : Found[Name]
}

type SummaryRow = Omit<Summary, 'recentFailures' | 'hours'> & {
  recentFailures: InJson<StoredDispatch>[]
  hours: InJson<DeliveriesOfHour>[]
}

interface SummaryParams {
  now: Date
  /** Start of the last 24 hours. */
  since: Date
  /** Scopes of the sums of outcomes: the accounts, or that of everything. */
  scopes: readonly string[]
  failures: number
}

const selectSummary = statement<SummaryRow, SummaryParams>(`
  with ${RECENT}
  select (${DELIVERIES}) as deliveries, (${EXHAUSTED}) as exhausted, (${WEBHOOK_COUNTS}) as webhooks,
    array(${EVENT_TYPES}) as "eventTypes", true as "isComplete", array(${FAILURES}) as "recentFailures", array(${HOURS}) as hours`)

const FAILURES_OF_ACCOUNTS = `
  select row_to_json(f) from (
    select failed.* from unnest($accounts::uuid[]) as own (account) cross join lateral (
      select ${OF_DISPATCH}, d.ended_at from webhook_dispatch d
      where d.status in ('exhausted', 'failed') and d.ended_at >= $since and ${OWNED}
      order by d.ended_at desc, d.document_id desc limit $failures) failed
    order by failed.ended_at desc, failed.id desc limit $failures) f`

const selectSummaryOfAccounts = statement<SummaryRow, SummaryParams & { accounts: readonly AccountId[] }>(`
  with ${RECENT_OF_ACCOUNTS}
  select (${DELIVERIES}) as deliveries, (${EXHAUSTED}) as exhausted,
    (${WEBHOOK_COUNTS_OF_ACCOUNTS}) as webhooks, '{}'::json[] as "eventTypes",
    (select is_complete from whole) as "isComplete",
    array(${FAILURES_OF_ACCOUNTS}) as "recentFailures", array(${HOURS}) as hours`)

/** Reads the dashboard within `scope`, with `failures` failures at most; all types or, for some accounts, none. */
export async function readSummary(
  db: Database,
  { now, failures, scope }: { now: Date; failures: number; scope: PermissionScope },
): Promise<Summary> {
  const scopes = scope === 'all' ? [EVERYTHING] : scope
  const params = { now, since: new Date(now.getTime() - HEALTH_WINDOW_MS), failures, scopes }
  const [row] =
    scope === 'all'
      ? await selectSummary(db, params)
      : await selectSummaryOfAccounts(db, { ...params, accounts: scope })
  const { recentFailures, hours, ...summary } = row as SummaryRow
  return {
    ...summary,
    recentFailures: recentFailures.map((failure) => toDispatchRecord(toStored(failure))),
    hours: hours.map((hour) => ({ ...hour, hour: new Date(hour.hour) })),
  }
}

function toStored(row: InJson<StoredDispatch>): StoredDispatch {
  const toDate = (text: string | null) => (text === null ? null : new Date(text))
  return {
    ...row,
    nextAttemptAt: toDate(row.nextAttemptAt),
    lastAttemptAt: toDate(row.lastAttemptAt),
    deliveredAt: toDate(row.deliveredAt),
    createdAt: new Date(row.createdAt as string),
    updatedAt: new Date(row.updatedAt as string),
  }
}

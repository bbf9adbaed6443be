import { type RawBuilder, sql } from 'kysely'
import type { UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { ADVISORY_LOCKS } from '../../postgres/statement/locks.ts'
import { aheadStatement, changeStatement, statement } from '../../postgres/statement/statement.ts'
import type { DB } from '../../postgres/statement/tables.generated.ts'
import { DURATION_BOUNDS_MS } from '../../webhook/activity/outcome-keys.ts'
import type { SampleRows } from './sample-plan.ts'

/** Rows of one statement: some megabytes of JSON. */
const CHUNK = 5_000

/** Inserts rows in their order, with the columns of the first. Returns how many there are. */
export async function insertSampleRows(db: Database, rows: SampleRows): Promise<number> {
  let count = 0
  for (const [table, all] of Object.entries(rows) as [keyof DB, object[]][]) {
    for (let from = 0; from < all.length; from += CHUNK)
      await buildInsert(table, all.slice(from, from + CHUNK)).execute(db)
    count += all.length
  }
  return count
}

function buildInsert(table: keyof DB, rows: readonly object[]): RawBuilder<unknown> {
  const columns = sql.join(Object.keys(rows[0] ?? {}).map((name) => sql.ref(name)))
  return sql`insert into ${sql.table(table)} (${columns})
    select ${columns} from jsonb_populate_recordset(null::${sql.table(table)}, ${toJson(rows)}::jsonb)`
}

/** A `Buffer` becomes the text of a `bytea`. */
function toJson(rows: readonly object[]): string {
  return JSON.stringify(rows, function replace(this: Record<string, unknown>, key, value) {
    const given = this[key]
    return Buffer.isBuffer(given) ? `\\x${given.toString('hex')}` : value
  })
}

/** Serializes fills: the second one waits, and finds the rows of the first. */
export const lockSample = aheadStatement(
  `select pg_advisory_xact_lock(hashtextextended('${ADVISORY_LOCKS.sample.key}', 0))`,
)

/** Excludes the sample's users from existing provisioning targets until the transaction ends. */
export const switchProvisioningOff = aheadStatement(`select set_config('signalbox.event_queue', 'off', true)`)

/** Whether one of these accounts exists, deleted or not. */
const findAccount = statement<{ found: boolean }, { accounts: readonly string[] }>(
  'select exists (select from account where document_id = any($accounts::uuid[])) as found',
)

/** Whether the sample exists. */
export async function hasSample(db: Database, accounts: readonly string[]): Promise<boolean> {
  const [row] = await findAccount(db, { accounts })
  return row?.found === true
}

const selectFacts = statement<{ kind: 'role' | 'type'; name: string; id: string }>(`
  select 'role' as kind, name, document_id as id from role where is_system
  union all select 'type', internal, document_id from event`)

/** Ids of the system roles and of the event types, by name. */
export async function readSampleFacts(
  db: Database,
): Promise<{ roles: Map<string, string>; eventTypes: Map<string, string> }> {
  const rows = await selectFacts(db)
  const pick = (kind: string) => new Map(rows.filter((row) => row.kind === kind).map(({ name, id }) => [name, id]))
  return { roles: pick('role'), eventTypes: pick('type') }
}

/** Moves the sample's webhooks to the sink of this start, whose port may differ. `prefix`: of the sink's path. */
export const moveToSink = changeStatement<{
  webhooks: readonly string[]
  sinkUrl: string
  path: string
  administrator: UserId
  now: Date
}>(`
  update webhook w set url = $sinkUrl || substring(w.url from position($path in w.url) + length($path)),
    updated_by = $administrator, updated_at = $now
  where w.document_id = any($webhooks::uuid[]) and w.url like '%' || $path || '?%' and w.url not like $sinkUrl || '?%'`)

/** Adds the deliveries of new targets to the totals of provisioning. */
export const countProvisioned = changeStatement<{ targets: readonly string[] }>(`
  insert into provisioning_total (status, came)
  select status, count(*) from provisioning_delivery
  where target = any($targets::uuid[]) and ended_at is not null group by status order by status
  on conflict (status) do update set came = provisioning_total.came + excluded.came`)

/** Makes the service count sign-ins and messages again, with those of the added month. */
export const recountActivity = changeStatement<Record<never, never>>(`
  with counted as (delete from activity_counted returning 1)
  delete from activity_sum where (select count(*) from counted) >= 0`)

/** Counts attempts as settled when they ended, in batches of ten minutes, which the service adds (`foldOutcomes`). */
export const recordSampleOutcomes = changeStatement<{ webhooks: readonly string[] }>(`
  insert into webhook_outcome_batch (settled_at, webhooks, owners, statuses, causes, durations, events, counts)
  select max(g.at), array_agg(g.webhook), array_agg(g.owner), array_agg(g.status), array_agg(g.error_class),
    array_agg(g.duration), array_agg(g.event), array_agg(g.attempts)
  from (
    select date_bin('10 minutes', l.started_at, timestamptz 'epoch') as bin, d.webhook,
      case when w.account = d.account then w.account end as owner,
      case when l.attempt = d.attempts and d.status in ('success', 'exhausted', 'failed') then d.status
        else 'retrying' end as status,
      l.error_class,
      case when l.status_code is not null then width_bucket(l.duration_ms, array[${DURATION_BOUNDS_MS.join(', ')}]) end
        as duration,
      d.event, count(*)::int as attempts, max(l.started_at + l.duration_ms * interval '1 millisecond') as at
    from webhook_attempt_log l
    join webhook_dispatch d on d.document_id = l.dispatch
    join webhook w on w.document_id = d.webhook
    where d.webhook = any($webhooks::uuid[])
    group by 1, 2, 3, 4, 5, 6, 7
  ) g
  group by g.bin`)

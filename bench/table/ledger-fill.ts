import type pg from 'pg'
import { buildKeyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'

/**
 * Rows that a measurement needs in numbers no API would write in time. This file alone knows the tables of webhooks and of
 * the ledger; everything here is plain SQL on them.
 */

/** Rows a statement writes at most. */
const CHUNK = 200_000

/** How far back ended rows go. Less than they are kept, so that maintenance deletes none. */
const LEDGER_DAYS = 20

/** An id as the service makes them, growing with time: `at` is an instant and `number` tells ids of one millisecond apart. */
const idAt = (at: string, number: string) =>
  `(lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(${number}), 15, '0'))::uuid`

/** Webhooks that answer with 200, and who owns them. */
export interface WebhookFill {
  count: number
  /** Whether each is of an account of its own, or all are of one. */
  accounts: 'one each' | 'one for all'
  /** The event type that all subscribe to, or `spread`: each to one of those of the catalogue, in turn. */
  eventType: string | 'spread'
  /** `http://127.0.0.1:<port>` of the sink. Webhook number n is called at `/ok/<n>`. */
  sinkOrigin: string
  /** Makes secrets under this `SECRET_KEY`; without it the webhooks have none, and must not be posted to. */
  secretKey?: string
}

/** Writes webhooks with their accounts and subscriptions. Returns the account of the first. */
export async function fillWebhooks(client: pg.Client, fill: WebhookFill): Promise<string> {
  const { count, sinkOrigin, secretKey } = fill
  const accounts = fill.accounts === 'one each' ? count : 1
  const { rows } = await client.query<{ document_id: string }>(
    `insert into account (document_id, name, created_at, updated_at)
     select gen_random_uuid(), 'Filled account ' || n, now(), now() from generate_series(1, $1::int) n
     returning document_id`,
    [accounts],
  )
  const accountIds = rows.map((row) => row.document_id)
  await client.query(
    `insert into webhook (document_id, url, account, is_global, created_at, updated_at)
     select gen_random_uuid(), $1::text || '/ok/' || (n - 1), ($2::uuid[])[1 + (n - 1) % cardinality($2::uuid[])], false,
       now(), now()
     from generate_series(1, $3::int) n`,
    [sinkOrigin, accountIds, count],
  )
  if (secretKey !== undefined) await sealSecrets(client, accountIds, secretKey)
  await client.query(
    `with type as (
       select document_id, row_number() over (order by internal) - 1 as number, count(*) over () as types from event
       where $1 = 'spread' or internal = $1
     ), numbered as (
       select document_id, row_number() over (order by document_id) as number from webhook where account = any($2)
     )
     insert into webhook_event (document_id, webhook, event, created_at, updated_at)
     select gen_random_uuid(), w.document_id, t.document_id, now(), now()
     from numbered w join type t on t.number = w.number % t.types`,
    [fill.eventType, accountIds],
  )
  return accountIds[0] ?? ''
}

/** Gives the webhooks of these accounts one secret, sealed for each row (docs/contract/configuration.md#reader). */
async function sealSecrets(client: pg.Client, accounts: readonly string[], secretKey: string): Promise<void> {
  const keyring = buildKeyring([secretKey], systemRandom)
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const { rows } = await client.query<{ id: string }>(
    'select document_id as id from webhook where account = any($1) and secret_encrypted is null',
    [accounts],
  )
  await client.query(
    `update webhook w set secret_encrypted = x.sealed
     from unnest($1::uuid[], $2::text[]) as x (id, sealed) where w.document_id = x.id`,
    [rows.map(({ id }) => id), rows.map(({ id }) => keyring.seal(secret, `webhook:${id}`))],
  )
}

/** A ledger that has grown. */
export interface LedgerFill {
  /** Ended rows, each with its event and one attempt. */
  ended: number
  /** Rows that wait for a retry, due in an hour or later. */
  waiting: number
  webhooks: number
  sinkOrigin: string
}

/** Writes webhooks of accounts of their own and their ledger, spread over the last 20 days, and has it analysed. */
export async function fillLedger(
  client: pg.Client,
  { ended, waiting, webhooks, sinkOrigin }: LedgerFill,
): Promise<void> {
  await fillWebhooks(client, { count: webhooks, accounts: 'one each', eventType: 'spread', sinkOrigin })
  await client.query(
    `create temp table filled as
     select (row_number() over (order by w.document_id) - 1)::int as number, w.document_id as webhook, w.account,
       e.internal as event
     from webhook w join webhook_event s on s.webhook = w.document_id join event e on e.document_id = s.event`,
  )
  await client.query('create unique index on filled (number)')
  await client.query('analyze filled')
  const tables = ['event_occurrence', 'webhook_dispatch_ended', 'webhook_dispatch_open', 'webhook_attempt']
  // Ids hold the time, so the clock stands still until every row is there.
  await client.query('begin')
  const indexes = await dropIndexes(client, tables)
  const total = ended + waiting
  for (let from = 0; from < total; from += CHUNK) {
    const to = Math.min(from + CHUNK, total) - 1
    await fillEvents(client, { from, to, total })
    await fillEnded(client, { from, to: Math.min(to, ended - 1), total })
    await fillWaiting(client, { from: Math.max(from, ended), to, total })
  }
  for (const index of indexes) await client.query(index)
  await client.query('drop table filled')
  await queueWaiting(client)
  await countMinutes(client)
  await client.query('commit')
  await client.query('vacuum analyze')
}

/** Drops the indexes that hold no constraint: they are built faster over all rows. Returns how to make them again. */
async function dropIndexes(client: pg.Client, tables: readonly string[]): Promise<string[]> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
     from pg_index i left join pg_constraint c on c.conindid = i.indexrelid
     where i.indrelid = any($1::regclass[]) and c.oid is null`,
    [tables],
  )
  for (const { name } of rows) await client.query(`drop index ${name}`)
  return rows.map(({ definition }) => definition)
}

/** Numbers of rows, both included; row n of `total` was made n / total of the way through the last 20 days. */
interface Numbers {
  from: number
  to: number
  total: number
}

const MADE_AT = `(now() - interval '1 hour' - interval '${LEDGER_DAYS} days' * (1 - n::float8 / $3))`

/** `made`: a row number, its instant to the millisecond that columns keep, its id, its event's, and a webhook in turn. */
const MADE = `
  with made as (
    select n, at, ${idAt('at', 'n')} as id, webhook, account, event
    from (select n, date_trunc('milliseconds', ${MADE_AT}) as at from generate_series($1::bigint, $2::bigint) n) numbered
    join filled on filled.number = n % (select count(*) from filled)
  )`

const valuesOf = ({ from, to, total }: Numbers) => [from, to, total]

async function fillEvents(client: pg.Client, numbers: Numbers): Promise<void> {
  await client.query(
    `${MADE}
     insert into event_occurrence (document_id, event, account, resource, action, resource_id, is_purge, routed_at, created_at)
     select id, event, account, split_part(event, '.', 1), split_part(event, '.', 2), 'filled-' || n, false, at, at
     from made`,
    valuesOf(numbers),
  )
}

/** Of 100 rows 95 succeeded, 3 are exhausted and 2 failed. */
async function fillEnded(client: pg.Client, numbers: Numbers): Promise<void> {
  await client.query(
    `${MADE}
     insert into webhook_dispatch_ended (document_id, webhook, event, event_id, account, status, attempts, last_error,
       last_attempt_at, last_status_code, last_duration_ms, delivered_at, ended_at, created_at, updated_at, fence, worker)
     select id, webhook, event, id, account, status, 1, case when status <> 'success' then 'HTTP 500' end,
       at, case when status = 'success' then 200 else 500 end, 12, case when status = 'success' then at end, at, at, at, 1,
       'filled'
     from made cross join lateral (
       select case when n % 100 < 95 then 'success' when n % 100 < 98 then 'exhausted' else 'failed' end as status
     ) s`,
    valuesOf(numbers),
  )
}

async function fillWaiting(client: pg.Client, numbers: Numbers): Promise<void> {
  await client.query(
    `${MADE}
     insert into webhook_dispatch_open (document_id, webhook, event, event_id, account, status, attempts, last_error,
       last_attempt_at, last_status_code, last_duration_ms, next_attempt_at, created_at, updated_at, fence)
     select id, webhook, event, id, account, 'retrying', 2, 'HTTP 500', at, 500, 12,
       now() + interval '1 hour' + interval '1 second' * (n % 7200), at, at, 2
     from made`,
    valuesOf(numbers),
  )
}

/** Gives each webhook that has rows which wait its place in the queue. */
async function queueWaiting(client: pg.Client): Promise<void> {
  await client.query(
    `insert into webhook_queue (webhook, visit_at)
     select webhook, min(next_attempt_at) from webhook_dispatch_open where next_attempt_at is not null group by webhook
     on conflict (webhook) do update set visit_at = least(webhook_queue.visit_at, excluded.visit_at)`,
  )
}

/** Counts what was filled by the minute, as the statements of the service do. */
async function countMinutes(client: pg.Client): Promise<void> {
  await client.query(
    `insert into webhook_delivery_minute (minute, status, shard, came, deliveries)
     select date_trunc('minute', created_at), status, 0, 0, count(*) from webhook_dispatch
     where created_at > now() - interval '25 hours' group by 1, 2
     on conflict (minute, status, shard) do update set deliveries = excluded.deliveries`,
  )
}

/** Deliveries that are due now. */
export interface BacklogFill {
  count: number
  /** Event number n has the resource id `r<run>-<n>`. */
  run: number
  eventType: string
  /** Row n is of webhook n, in turn. */
  subscribers: readonly { account: string; webhook: string }[]
}

/** Writes routed events with a ledger row each, due now, in one transaction. */
export async function fillBacklog(
  client: pg.Client,
  { count, run, eventType, subscribers }: BacklogFill,
): Promise<void> {
  const made = `
    with made as (
      select n, date_trunc('milliseconds', now()) as at, ${idAt('now()', 'n')} as id,
        ($2::uuid[])[1 + n % cardinality($2::uuid[])] as webhook, ($3::uuid[])[1 + n % cardinality($3::uuid[])] as account
      from generate_series(0, $1::int - 1) n
    )`
  const values = [
    count,
    subscribers.map((subscriber) => subscriber.webhook),
    subscribers.map((subscriber) => subscriber.account),
    eventType,
  ]
  await client.query('begin')
  await client.query(
    `${made}
     insert into event_occurrence (document_id, event, account, resource, action, resource_id, is_purge, routed_at, created_at)
     select id, $4, account, split_part($4, '.', 1), split_part($4, '.', 2), $5::text || n, false, at, at
     from made where webhook is not null`,
    [...values, `r${run}-`],
  )
  await client.query(
    `${made}
     insert into webhook_dispatch_open (document_id, webhook, event, event_id, account, status, next_attempt_at, created_at,
       updated_at)
     select id, webhook, $4, id, account, 'pending', at, at, at from made`,
    values,
  )
  await queueWaiting(client)
  await countMinutes(client)
  await client.query('commit')
}

/** The size of the client's database, MB. */
export async function readSizeMb(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ mb: number }>('select (pg_database_size(current_database()) / 1e6)::int as mb')
  return rows[0]?.mb ?? 0
}

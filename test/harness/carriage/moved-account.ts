import { randomUUID } from 'node:crypto'
import type { AccountId } from '../../../src/base/id.ts'
import { LEDGER, STATE } from '../../../src/carriage/move/account-tables.ts'
import type { Place } from '../../../src/carriage/move/move-plan.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'

/** Home and two cells, with their fences open. */
export interface MovedGround extends AsyncDisposable {
  at(place: Place): TestDatabase
}

const CELLS = ['c1', 'c2']

/** Opens home and two cells, each an own database. Reference rows are written by `addAccount`. */
export async function openMovedGround(): Promise<MovedGround> {
  const stack = new AsyncDisposableStack()
  const databases = new Map<Place, TestDatabase>()
  const home = randomUUID()
  for (const place of [null, ...CELLS]) {
    const database = stack.use(await createTestDatabase({ isOwn: true }))
    databases.set(place, database)
    await database.pool.query('insert into database_identity (home, cell) values ($1, $2)', [home, place])
    await database.pool.query('select open_fence()')
  }
  for (const cell of CELLS)
    await databases
      .get(null)
      ?.pool.query(
        `insert into cell (name, database_url_encrypted, state, created_at, updated_at) values ($1, '-', 'active', now(), now())`,
        [cell],
      )
  return { at: (place) => databases.get(place) as TestDatabase, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

/** Writes the reference rows of an account, as logical replication does. */
export async function addAccount(ground: MovedGround, types: readonly string[] = ['order.create']): Promise<AccountId> {
  const account = randomUUID()
  const ids = types.map(() => randomUUID())
  for (const place of [null, ...CELLS]) {
    const { pool } = ground.at(place)
    await pool.query(
      `insert into account (document_id, name, created_at, updated_at) values ($1, 'Example', now(), now())`,
      [account],
    )
    await pool.query(
      `insert into event (document_id, internal, source, account_scope, created_at, updated_at)
       select a.id, a.name, 'external', 'account', now(), now() from unnest($1::uuid[], $2::text[]) a (id, name)
       on conflict (internal) do nothing`,
      [ids, types],
    )
  }
  return account as AccountId
}

/** What `fillAccount` wrote. */
export interface FilledAccount {
  webhooks: string[]
  globalWebhook: string
}

/**
 * Writes rows of every table that a move copies: `events` events of the account with an ended, a waiting and a pulled
 * delivery among them, a global webhook that has the first event too, and what belongs to its webhooks.
 */
export async function fillAccount(database: TestDatabase, account: AccountId, events: number): Promise<FilledAccount> {
  const { pool } = database
  const [push, pull, globalWebhook, job] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()]
  await pool.query(
    `insert into webhook (document_id, url, name, account, is_global, mode, secret_encrypted, max_per_second, created_at,
       updated_at)
     select a.id, case when a.mode = 'pull' then '' else 'https://example.com/hook' end, 'Hook', $4::uuid, a.is_global,
       a.mode, 'v1.key.' || a.id, case when a.mode = 'push' then 5 end, now(), now()
     from (values ($1::uuid, 'push', false), ($2, 'pull', false), ($3, 'push', true)) a (id, mode, is_global)`,
    [push, pull, globalWebhook, account],
  )
  await pool.query(
    `insert into webhook_event (document_id, webhook, event, created_at, updated_at)
     select gen_random_uuid(), w.id, e.document_id, now(), now()
     from unnest($1::uuid[]) w (id) cross join event e where e.internal = 'order.create'`,
    [[push, pull, globalWebhook]],
  )
  await pool.query(
    `insert into event_occurrence (document_id, event, account, resource, action, resource_id, created_at, routed_at,
       published_by, publish_request, publish_detail)
     select gen_random_uuid(), 'order.create', $1, 'order', 'create', n::text,
       date_trunc('milliseconds', now()) - n * interval '1 ms', now(), gen_random_uuid(), gen_random_uuid(),
       '{"events": 1, "big": 9007199254740993}'
     from generate_series(1, $2::int) n`,
    [account, events],
  )
  await pool.query(
    `insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, created_at,
       updated_at, ended_at, worker, response_headers, response_excerpt, total_ms, last_attempt_at, last_duration_ms)
     select gen_random_uuid(), w.id, e.document_id, e.event, e.account, case when e.resource_id::int % 7 = 0 then 'exhausted'
       else 'success' end, 2, e.created_at, e.created_at, e.created_at, 'worker', '{"x": "y"}', 'äöü "quoted" \\ 😀', 1.2345678,
       e.created_at, 12
     from event_occurrence e, unnest($2::uuid[]) w (id) where e.account = $1 and e.resource_id::int > 3
       and (w.id <> $3 or e.resource_id = '4')`,
    [account, [push, pull, globalWebhook], globalWebhook],
  )
  await pool.query(
    `insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms, timings)
     select document_id, 1, 'schedule', 'worker', created_at, 5, '{"dnsMs": 0.1}' from webhook_dispatch_ended where account = $1`,
    [account],
  )
  await pool.query(
    `insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, status, attempts, next_attempt_at,
       kept_until, fence, created_at, updated_at)
     select gen_random_uuid(), w.id, e.document_id, e.event, e.account, 'retrying', 3,
       date_trunc('milliseconds', now()) + interval '5 min', case when w.id = $3 then now() + interval '7 days' end, 6,
       e.created_at, e.created_at
     from event_occurrence e, unnest($2::uuid[]) w (id) where e.account = $1 and e.resource_id::int <= 3`,
    [account, [push, pull], pull],
  )
  await pool.query(
    `insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms)
     select document_id, 1, 'schedule', 'worker', created_at, 5 from webhook_dispatch_open where account = $1`,
    [account],
  )
  await pool.query(
    `insert into webhook_delivery_minute (minute, status, shard, came, deliveries)
     select date_trunc('minute', created_at), status, 3, count(*), count(*) from webhook_dispatch where account = $1 group by 1, 2
     on conflict (minute, status, shard) do update set came = webhook_delivery_minute.came + excluded.came,
       deliveries = webhook_delivery_minute.deliveries + excluded.deliveries`,
    [account],
  )
  await pool.query(
    `insert into webhook_queue (webhook, visit_at) select webhook, min(next_attempt_at) from webhook_dispatch_open
     where webhook = $1 group by 1`,
    [push],
  )
  for (const text of SMALL) await pool.query(text, [account, push, job].slice(0, countPlaces(text)))
  return { webhooks: [push, pull], globalWebhook }
}

/** Parameters of a text. */
const countPlaces = (text: string) => (text.includes('$3') ? 3 : text.includes('$2') ? 2 : 1)

const SMALL = [
  `insert into realtime_message_ended (document_id, account, event, status, attempts, results, created_at, ended_at, fence)
   select document_id, account, event, 'published', 1, 1, created_at, created_at, 1 from event_occurrence where account = $1`,
  `insert into realtime_message_open (document_id, account, event, attempts, next_attempt_at, created_at, updated_at)
   values (gen_random_uuid(), $1, 'order.create', 1, now(), now(), now())`,
  'insert into realtime_queue (account, visit_at) values ($1, now())',
  `insert into webhook_throttle (webhook, claimed_at, counts, next_at)
   select $2::uuid, array[now()], array[3], now() where $1::uuid is not null`,
  `insert into webhook_mail_notice (webhook, kind, account, dispatch, created_at) values ($2, 'failing', $1, gen_random_uuid(), now())`,
  'insert into webhook_mail_turn (account, mailed_at) values ($1, now())',
  `insert into alert_incident (document_id, incident, subject, summary, since, due_at, firing_posted_at)
   select gen_random_uuid(), 'webhook-disabled', $2::uuid::text, 'It was disabled.', now(), now(), now()
   where $1::uuid is not null`,
  `insert into replay_job (document_id, status, filters, confirm_duplicate, total, created_at, updated_at, accounts)
   select $3::uuid, 'paused', '{"status|eq|exhausted"}', true, 2, now(), now(), array[$1::uuid] where $2::uuid is not null`,
  `insert into replay_job_item (job, position, dispatch)
   select $3::uuid, row_number() over (), document_id from (select document_id from webhook_dispatch_ended
   where account = $1 and webhook = $2 limit 2) d`,
  `insert into webhook_outcome (scope, width, at, measure, count) values ($1, 'hour', date_trunc('hour', now()), 'success', 9007199254740993)`,
  `insert into webhook_outcome_hour (webhook, hour, event, success, retrying, failed, last_at)
   select $2::uuid, date_trunc('hour', now()), 'order.create', 5, 1, 0, now() where $1::uuid is not null`,
  `insert into webhook_outcome_day (webhook, day, event, attempts, failed)
   select $2::uuid, date_trunc('day', now()), 'order.create', 5, 1 where $1::uuid is not null`,
  `insert into webhook_breakdown (subject, at, width, measure, attempts, failed)
   select s, date_trunc('hour', now()), 'hour', 'event:order.create', 5, 1 from unnest(array[$1::uuid, $2::uuid]) s`,
  `insert into idempotency_key (caller, route, key, body_hash, response, created_at, account)
   values ('someone', 'POST /x', $1::uuid::text, '\\x0001ff', '{"data": 1}', now(), $1)`,
  `insert into publish_key (caller, key, content_hash, event_id, created_at)
   select 'someone', e.document_id::text, '\\xff00', e.document_id, now() from event_occurrence e where e.account = $1 limit 2`,
  `insert into audit_log (document_id, action, outcome, target, account, detail, created_at)
   values (gen_random_uuid(), 'webhook.create', 'success', $2, $1, '{"a": {"b": [1, null]}}', now())`,
]

/** The rows of an account by table, as text, without what the fence and the queues hold. */
export async function dumpAccount(database: TestDatabase, account: AccountId): Promise<Record<string, string[]>> {
  const { pool } = database
  const { rows } = await pool.query(
    'select document_id::text as id from webhook where account = $1 and not is_global order by 1',
    [account],
  )
  const webhooks = rows.map(({ id }) => id as string)
  const parts: { table: string; owned: string }[] = [
    ...LEDGER.map(({ table, column, of }) => ({
      table,
      owned: `t.${column} = ${of === 'account' ? '$account' : 'any($webhooks)'}`,
    })),
    ...STATE,
    {
      table: 'webhook_attempt',
      owned: 't.dispatch in (select d.document_id from webhook_dispatch d where d.webhook = any($webhooks))',
    },
  ]
  const selects = parts.map(({ table, owned }) => {
    const condition = owned.replaceAll('$account', '$1::uuid').replaceAll('$webhooks', '$2::uuid[]')
    return `select '${table}' as "table", row_to_json(t)::text as row from ${table} t where ${condition}`
  })
  const found = await pool.query<{ table: string; row: string }>({
    ...{ name: 'dump of an account', text: selects.join(' union ') },
    values: [account, webhooks],
  })
  const dump = Object.fromEntries(parts.map(({ table }): [string, string[]] => [table, []]))
  for (const { table, row } of found.rows) dump[table]?.push(row)
  for (const list of Object.values(dump)) list.sort()
  return dump
}

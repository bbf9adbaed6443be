import type pg from 'pg'

/**
 * Rows of others beside those of 50 small accounts, in numbers no API would write in time. This file alone knows the tables
 * of lists; everything here is plain SQL on them, without triggers.
 */

/**
 * Who the others are: one account that holds nearly all of the rows, beside many that hold one of each; or many that hold a
 * few each.
 */
export type Population = 'one huge' | 'spread'

/** Rows of the others at scale 1. */
const OTHERS = {
  users: 200_000,
  sessions: 400_000,
  contracts: 300_000,
  webhooks: 100_000,
  subscriptions: 300_000,
  events: 1_000_000,
  messages: 100_000,
}

/** Accounts of the spread population at scale 1. */
const ACCOUNTS = 50_000

/** The accounts of the callers: a user is a member of all of them, another one and a key of the first only. */
const OWN_ACCOUNTS = 50

/** Rows of each kind in each of them. */
export const OWN_ROWS = 5

const DAYS = 20

/** Ids and instants of row `n` of `$2`: they grow together, as those of the service do. */
const AT = `date_trunc('milliseconds', now() - interval '1 hour' - interval '${DAYS} days' * (1 - n::float8 / $2))`
const ID = `(lpad(to_hex((extract(epoch from ${AT}) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid`

const TABLES = [
  ...['"user"', 'user_role', 'session', 'account_member', 'contract', 'webhook', 'webhook_event', 'event_occurrence'],
  ...['webhook_dispatch_ended', 'webhook_attempt', 'audit_log', 'realtime_message_ended'],
]

/** The ids of what a population has of its own accounts. */
export interface Filled {
  own: string[]
  /** One of the accounts of the others. */
  other: string
}

/** Fills a prepared database, and analyses it. `scale` 1 is the full size. */
export async function fillPopulation(
  client: pg.ClientBase,
  { population, scale }: { population: Population; scale: number },
): Promise<Filled> {
  const rows = (count: number) => Math.max(1, Math.round(count * scale))
  const own = await addAccounts(client, OWN_ACCOUNTS, 'Own')
  const others = await addAccounts(client, rows(ACCOUNTS), 'Other')
  await client.query('begin')
  await client.query('set local session_replication_role = replica')
  await client.query(`update event set is_tenant_visible = true where internal like 'contract.%'`)
  const indexes = await dropIndexes(client)
  const counts = Object.fromEntries(Object.entries(OTHERS).map(([name, count]) => [name, rows(count)]))
  const ofEach = (count: number) => ({
    ...OTHERS,
    ...Object.fromEntries(Object.keys(OTHERS).map((name) => [name, count])),
    ...{ users: 0, sessions: 0 },
  })
  const [huge = ''] = others
  await addRows(client, population === 'spread' ? others : [huge], { ...OTHERS, ...counts })
  if (population === 'one huge') await addRows(client, others.slice(1), ofEach(others.length - 1))
  await addRows(client, own, ofEach(OWN_ACCOUNTS * OWN_ROWS))
  for (const index of indexes) await client.query(index)
  await client.query('commit')
  await client.query('vacuum analyze')
  return { own, other: huge }
}

async function addAccounts(client: pg.ClientBase, count: number, name: string): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `insert into account (document_id, name, created_at, updated_at)
     select ${ID}, $3 || ' ' || n, ${AT}, ${AT} from generate_series(1, $1::int) n
     returning document_id as id`,
    [count, count + (name === 'Own' ? 7 : 0), name],
  )
  return rows.map(({ id }) => id)
}

/** Drops the indexes that hold no constraint: they are built faster over all rows. Returns how to make them again. */
async function dropIndexes(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
     from pg_index i left join pg_constraint c on c.conindid = i.indexrelid
     where i.indrelid = any($1::regclass[]) and c.oid is null`,
    [TABLES],
  )
  for (const { name } of rows) await client.query(`drop index ${name}`)
  return rows.map(({ definition }) => definition)
}

/** Row n is of account n, in turn. */
const ACCOUNT = '($3::uuid[])[1 + n % cardinality($3::uuid[])]'

/** Ids of rows that refer to each other are made from a number, a kind and the first account. */
const ref = (kind: string, number: string) => `md5('${kind}' || (${number}) || ($3::uuid[])[1])::uuid`

async function addRows(client: pg.ClientBase, accounts: readonly string[], counts: typeof OTHERS): Promise<void> {
  const add = async (into: string, count: number, values: string) => {
    if (count === 0) return
    const text = `insert into ${into} select ${values} from generate_series(1, $1::int) n where $3::uuid[] is not null`
    await client.query(text.replaceAll('{at}', AT).replaceAll('{id}', ID).replaceAll('{account}', ACCOUNT), [
      count,
      count,
      accounts,
    ])
  }
  const user = (number: string) => ref('user', `1 + ${number} % ${Math.max(1, counts.users)}`)
  const webhook = `1 + n % ${counts.webhooks}`
  await add(
    '"user" (document_id, email, name, is_actived, created_at, updated_at)',
    counts.users,
    `${ref('user', 'n')}, 'person-' || n || '@filled.example', 'Person ' || n, true, {at}, {at}`,
  )
  await add(
    'account_member (document_id, account, "user", created_at, updated_at)',
    counts.users,
    `{id}, {account}, ${ref('user', 'n')}, {at}, {at}`,
  )
  await add(
    'user_role ("user", role, created_at)',
    counts.users,
    `${ref('user', 'n')}, (select document_id from role where name = 'member'), {at}`,
  )
  await add(
    'session (document_id, "user", expires_at, auth_time, last_used_at, created_at, updated_at)',
    counts.sessions,
    `{id}, ${user('n')}, now() + interval '90 days', {at}, {at}, {at}, {at}`,
  )
  await add(
    'contract (document_id, account, name, status, created_at, updated_at)',
    counts.contracts,
    `{id}, {account}, 'Contract ' || n, 'active', {at}, {at}`,
  )
  await add(
    'webhook (document_id, url, account, created_at, updated_at)',
    counts.webhooks,
    `${ref('webhook', 'n')}, 'https://receiver.example/' || n, {account}, {at}, {at}`,
  )
  // A webhook has the account of its number, and so has what refers to it.
  const ofWebhook = `($3::uuid[])[1 + (${webhook}) % cardinality($3::uuid[])]`
  await add(
    'webhook_event (document_id, webhook, event, account, created_at, updated_at)',
    counts.subscriptions,
    `{id}, ${ref('webhook', webhook)}, (select array_agg(document_id order by internal) from event)[1 + n / ${counts.webhooks}],
     ${ofWebhook}, {at}, {at}`,
  )
  await addDeliveries(add, { webhook, ofWebhook, ...counts })
}

type Add = (into: string, count: number, values: string) => Promise<void>

/** Events, each with a delivery, an attempt and an audit entry, and messages. */
async function addDeliveries(
  add: Add,
  { webhook, ofWebhook, events, messages }: { webhook: string; ofWebhook: string; events: number; messages: number },
): Promise<void> {
  await add(
    `event_occurrence (document_id, event, account, resource, action, resource_id, is_purge, routed_at, created_at)`,
    events,
    `{id}, 'contract.update', ${ofWebhook}, 'contract', 'update', 'filled-' || n, false, {at}, {at}`,
  )
  const status = `case when n % 100 < 95 then 'success' when n % 100 < 98 then 'exhausted' else 'failed' end`
  await add(
    `webhook_dispatch_ended (document_id, webhook, event, event_id, account, status, attempts, last_attempt_at,
       last_status_code, last_duration_ms, ended_at, created_at, updated_at, fence)`,
    events,
    `{id}, ${ref('webhook', webhook)}, 'contract.update', {id}, ${ofWebhook}, ${status}, 1, {at}, 200, 12, {at}, {at}, {at}, 1`,
  )
  await add(
    'webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms, status_code)',
    events,
    `{id}, 1, 'schedule', 'filled', {at}, 12, 200`,
  )
  await add(
    'audit_log (document_id, action, outcome, account, detail, created_at)',
    events,
    `{id}, 'event.publish', 'success', ${ofWebhook}, '{}', {at}`,
  )
  await add(
    `realtime_message_ended (document_id, account, event, status, attempts, results, created_at, ended_at, fence)`,
    messages,
    `{id}, {account}, 'contract.update', 'published', 1, 1, {at}, {at}, 1`,
  )
}

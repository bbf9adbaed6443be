import type { WholeRead } from '../harness/plan/request-plans.ts'

/** Statements that read more than the rows of one key. */
interface Known {
  /** A part of the statement, on one line. */
  sql: string
  tables: readonly string[]
}

/** Tables of a few rows, whatever is stored: what a release brings, what has a limit for all, and what a process keeps. */
const SMALL = [
  'event',
  'permission',
  'role',
  'provisioning_target',
  'realtime_watch',
  'oauth_signing_key',
  'kept_mail',
  'process_skew',
  'schema_migration',
  'cell',
]

/** Each group with its reason. */
const KNOWN: Record<string, readonly Known[]> = {
  'a page in the order of the list, for the limit of the page': [
    { sql: 'select distinct user_id from realtime_grant', tables: ['realtime_grant'] },
    {
      sql: 'select token as name, user_id as "userId", ends_at as "endsAt" from realtime_grant_token where token >',
      tables: ['realtime_grant_token'],
    },
    {
      sql: 'select token as name, user_id as "userId", ends_at as "endsAt" from realtime_grant_token where ends_at',
      tables: ['realtime_grant_token'],
    },
  ],
  'a page of messages sorts those that wait: few but in an outage, and another index would cost every message': [
    {
      sql: 'select "document_id" as "id", "account" as "account", "event" as "event", "contract"',
      tables: ['realtime_message_open'],
    },
  ],
  'health and its metrics: each count ends at a limit': [
    {
      sql: 'with active as ( select q.webhook',
      tables: ['webhook_queue', 'webhook', 'webhook_dispatch_ended', 'event_queue', 'webhook_fan_out'],
    },
    { sql: 'with live as materialized (select * from realtime_watch', tables: ['realtime_queue'] },
    // From one key id to the next: a few steps for any number of secrets.
    { sql: 'with recursive webhook_secret_encrypted_keys', tables: ['webhook', 'totp_factor', 'connection'] },
    { sql: 'select c.document_id, c.account, c.certificates_end_at from connection c', tables: ['connection'] },
    { sql: 'select reason, count from connection_activity where day >= $1 limit', tables: ['connection_activity'] },
  ],
  'the depth of the queue: each count ends at a limit': [
    {
      sql: 'with busy as materialized ( select f.webhook',
      tables: ['webhook_queue', 'webhook_dispatch_open', 'event_queue', 'webhook_fan_out'],
    },
  ],
  'the dashboard: the minutes of a day, the failures of a window to a limit, and counts that the sweep adds up': [
    {
      sql: 'with recent as materialized ( select date_trunc',
      tables: ['webhook_count', 'webhook_delivery_minute', 'webhook_dispatch_ended'],
    },
  ],
  'roles are made by operators alone, and each is compared with what the caller holds': [
    {
      sql: 'select from role_permission p where p.role = role.document_id and not',
      tables: ['role_permission'],
    },
  ],
  'an explanation for those who may see the webhooks of all accounts': [
    { sql: 'from event_occurrence o left join event t', tables: ['webhook'] },
  ],
  'a forecast reads global webhooks in the order of an index of them alone, for its limit': [
    { sql: 'select t.internal as type, t.account_scope', tables: ['webhook'] },
  ],
  'the start of a sync counts the users that it copies': [{ sql: 'insert into provisioning_job', tables: ['user'] }],
}

/** The tables of lists that are views. */
const VIEWS: Record<string, readonly string[]> = {
  realtime_message: ['realtime_message_open', 'realtime_message_ended'],
  audit_publication: ['event_occurrence'],
}

/**
 * Whether a read is one of a list: of a page, which an index has in its order, so that it ends at its limit; or of as many
 * rows as a total counts. These requests ask without filters, as one who may see the rows of all accounts.
 */
function isOfList({ sql, table, isSorted }: WholeRead): boolean {
  const parts = [...sql.matchAll(/("listing_id"|select 1 as "one") from "(\w+)"/g)]
  return parts.some(
    ([, page, list = '']) => (VIEWS[list] ?? [list]).includes(table) && !(page === '"listing_id"' && isSorted),
  )
}

/** The whole reads of tables that grow, but for the known ones; and what is known here without need. */
export function judgeWholeReads(reads: readonly WholeRead[]): { unknown: string[]; unused: string[] } {
  const growing = reads.filter((read) => !SMALL.includes(read.table) && !isOfList(read))
  const known = Object.values(KNOWN)
    .flat()
    .flatMap(({ sql, tables }) => tables.map((table) => ({ sql, table })))
  const isOf = (read: WholeRead, { sql, table }: { sql: string; table: string }) =>
    read.table === table && read.sql.includes(sql)
  const unknown = growing
    .filter((read) => !known.some((item) => isOf(read, item)))
    .map(({ table, step, sql, state }) => `${table} by ${step}, on tables ${state}: ${sql}`)
  const unused = known
    .filter((item) => !growing.some((read) => isOf(read, item)))
    .map(({ sql, table }) => `${table}: ${sql}`)
  const unread = SMALL.filter((table) => !reads.some((read) => read.table === table))
  return { unknown: [...new Set(unknown)], unused: [...unused, ...unread] }
}

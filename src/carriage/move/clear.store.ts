import type { AccountId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement, rowStatement, valueStatement } from '../../postgres/statement/statement.ts'
import type { CopiedKey } from './move.store.ts'

const UNCOUNTED = `counted as (
    insert into webhook_delivery_minute (minute, status, shard, came, deliveries)
    select date_trunc('minute', created_at), status, 128, 0, -count(*) from gone group by 1, 2 order by 1, 2
    on conflict (minute, status, shard) do update
      set deliveries = webhook_delivery_minute.deliveries + excluded.deliveries
  )`

const deleteDeliveries = (table: string) =>
  valueStatement<number, { webhook: string; limit: number }>(`
  with gone as (
    delete from ${table} where document_id = any(array(
      select document_id from ${table} where webhook = $webhook limit $limit))
    returning document_id, created_at, status
  ), ${UNCOUNTED}, attempts as (
    delete from webhook_attempt where dispatch = any(array(select document_id from gone))
  )
  select count(*)::int as count from gone`)

const deleteEnded = deleteDeliveries('webhook_dispatch_ended')
const deleteOpen = deleteDeliveries('webhook_dispatch_open')

const deleteEntries = changeStatement<{ webhook: string; limit: number }>(`
  delete from audit_log where document_id = any(array(
    select document_id from audit_log where target = $webhook limit $limit))`)

/** A page of a deletion, in a transaction of its own: the tables are locked in no order. Returns the number of rows. */
export type Deletion = (tx: Database) => Promise<number>

/** The deletions of the ledger of a webhook, in pages of `limit` rows. */
export function listLedgerDeletions(webhook: string, limit: number): Deletion[] {
  const given = { webhook, limit }
  return [(tx) => deleteOpen(tx, given), (tx) => deleteEnded(tx, given), (tx) => deleteEntries(tx, given)]
}

/** Home publishes what it tells after the account has left: those events are not behind the ordinal of the copy. */
const deleteMessages = (table: string) =>
  changeStatement<{ account: AccountId; ordinal: number; limit: number }>(`
  delete from ${table} where document_id = any(array(
    select m.document_id from ${table} m where m.account = $account and coalesce(
      (select e.ordinal from event_occurrence e where e.document_id = m.document_id offset 0), 0)
        <= $ordinal::float8::bigint
    limit $limit))`)

const deleteEndedMessages = deleteMessages('realtime_message_ended')
const deleteOpenMessages = deleteMessages('realtime_message_open')

/** The deletions of realtime messages of an account for events up to an ordinal, in pages of `limit` rows. */
export function listMessageDeletions(given: { account: AccountId; ordinal: number; limit: number }): Deletion[] {
  return [deleteEndedMessages, deleteOpenMessages].map((remove) => (tx) => remove(tx, given))
}

/**
 * Without those that deliveries of other webhooks need: global ones of home, and ones that were moved to the account. Home
 * takes in what the account records elsewhere, which has none before it is routed.
 */
const UNUSED = `exists (
      select from event_occurrence r where r.document_id = e.document_id and r.routed_at is not null offset 0)
      and not exists (select from webhook_dispatch_ended d where d.event_id = e.document_id)
      and not exists (select from webhook_dispatch_open d where d.event_id = e.document_id)`

/** Deletes a page of the account's unused events up to an ordinal. Returns the last key; undefined at the end. */
export const deleteEventPage = rowStatement<
  CopiedKey,
  CopiedKey & { account: AccountId; ordinal: number; limit: number }
>(`
  with page as materialized (
    select e.document_id, e.created_at, e.ordinal from event_occurrence e
    where e.account = $account and (e.created_at, e.document_id) > ($at::timestamptz, $id::uuid)
    order by e.created_at, e.document_id limit $limit
  ), gone as (
    delete from event_occurrence where document_id = any(array(
      select e.document_id from page e
      where coalesce(e.ordinal, 0) <= $ordinal::float8::bigint and ${UNUSED}))
  )
  select l.created_at::text as at, l.document_id::text as id
  from page l order by l.created_at desc, l.document_id desc limit 1`)

/** The open messages of an account in its database, as `deleteListedMessages` takes them. */
export const listOpenMessages = valueStatement<string, { account: AccountId }>(`
  select coalesce(json_agg(json_build_object('document_id', m.document_id)), '[]')::text as rows
  from realtime_message_open m where m.account = $account`)

const deleteListedOf = (table: string) =>
  changeStatement<{ rows: string }>(`
  delete from ${table} where document_id = any(array(
    select e.document_id from json_to_recordset($rows::json) as e (document_id uuid)))`)

const deleteListedEnded = deleteListedOf('realtime_message_ended')
const deleteListedOpen = deleteListedOf('realtime_message_open')

/** Deletes the listed messages. */
export async function deleteListedMessages(tx: Database, rows: string): Promise<void> {
  await deleteListedEnded(tx, { rows })
  await deleteListedOpen(tx, { rows })
}

const deleteListed = changeStatement<{ rows: string }>(`
  delete from event_occurrence where document_id = any(array(
    select e.document_id from json_to_recordset($rows::json) as e (document_id uuid, origin text)
    where e.origin is null and ${UNUSED}))`)

/** Only what is taken in has no ordinal. */
const giveBack = changeStatement<{ rows: string; origin: string }>(`
  update event_occurrence set origin = $origin where ordinal is null and origin is null and document_id = any(array(
    select e.document_id from json_to_recordset($rows::json) as e (document_id uuid, origin text)
    where e.origin is null))`)

/**
 * Deletes those of the listed events that no delivery here needs. One taken in before is again what `source` recorded.
 */
export async function deleteListedEvents(tx: Database, rows: string, source: string): Promise<void> {
  await deleteListed(tx, { rows })
  await giveBack(tx, { rows, origin: source })
}

const OWN = 'array(select w.document_id from webhook w where w.account = $account and not w.is_global)'
const SMALL = [
  'delete from webhook_queue where webhook = any(OWN)',
  'delete from webhook_throttle where webhook = any(OWN)',
  'delete from webhook_outcome where scope = $account',
  'delete from webhook_outcome_hour where webhook = any(OWN)',
  'delete from webhook_outcome_day where webhook = any(OWN)',
  'delete from webhook_breakdown where subject = $account::uuid or subject = any(OWN)',
  'delete from webhook_mail_turn where account = $account',
  'delete from alert_incident where resolved_at is null and subject = any(OWN::text[])',
  'delete from replay_job where accounts[1] = $account and accounts = array[$account::uuid]',
  // With their links and their notices.
  'delete from webhook where account = $account and not is_global',
].map((text) => changeStatement<{ account: AccountId }>(text.replaceAll('OWN', OWN)))

/** The deletions of the state of the account, each as a whole; its webhooks last: they find the rest. */
export function listStateDeletions(account: AccountId): Deletion[] {
  return SMALL.map((remove) => (tx) => remove(tx, { account }))
}

/** Ends the routing of events to what the account leaves here. */
export const deleteLinksOf = changeStatement<{ account: AccountId }>(`
  delete from webhook_event where webhook = any(${OWN})`)

import { type SelectQueryBuilder, sql } from 'kysely'
import type { AccountId } from '../../base/id.ts'
import type { IsOf } from '../../http/listing/merge.ts'
import type { OwnAccount } from '../../http/listing/page.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { columnStatement, isNull, testStatement } from '../../postgres/statement/statement.ts'
import type { DB } from '../../postgres/statement/tables.generated.ts'

/** The requested row, and the accounts that it may belong to; null for any. */
interface OwnedRow {
  id: string
  accounts: readonly AccountId[] | null
}

/** The webhook `w` belongs to one of the accounts `$accounts`. A global one belongs to none. */
const OWNED = '($accounts::uuid[] is null or (not w.is_global and w.account = any($accounts::uuid[])))'

const WEBHOOK = `select from webhook w where w.document_id = $id and ${OWNED}`
const selectAnyWebhook = testStatement<OwnedRow>(WEBHOOK)
const selectWebhook = testStatement<OwnedRow>(`${WEBHOOK} and ${isNull('w.deleted_at')}`)

const selectSubscription = testStatement<OwnedRow>(`
  select from webhook_event s join webhook w on w.document_id = s.webhook
  where s.document_id = $id and ${OWNED} and ${isNull('s.deleted_at')} and ${isNull('w.deleted_at')}`)

// Its event must be of one of the accounts too: the webhook may have had another account before.
const selectDispatch = testStatement<OwnedRow>(`
  select from webhook_dispatch d join webhook w on w.document_id = d.webhook
  where d.document_id = $id and ($accounts::uuid[] is null or d.account = any($accounts::uuid[])) and ${OWNED}`)

// A job created with more accounts, or all of them, counts rows of others.
const selectJob = testStatement<OwnedRow>(`
  select from replay_job j
  where j.document_id = $id
    and ($accounts::uuid[] is null or (cardinality(j.accounts) > 0 and j.accounts <@ $accounts::uuid[]))`)

const SELECTS = {
  webhook: selectWebhook,
  'webhook, deleted or not': selectAnyWebhook,
  subscription: selectSubscription,
  dispatch: selectDispatch,
  job: selectJob,
}

/** The kinds of rows that belong to the account of a webhook. */
export type OwnedKind = keyof typeof SELECTS

/** Whether a row exists, not deleted unless its kind says so, and belongs to one of these accounts. */
export function isOwnedBy(db: Database, kind: OwnedKind, row: OwnedRow): Promise<boolean> {
  return SELECTS[kind](db, row)
}

/** Restricts a list of webhooks to an account. A global one belongs to none. */
export function keepOwnWebhooks<Found>(query: SelectQueryBuilder<DB, 'webhook', Found>, own: OwnAccount | undefined) {
  // A literal, as in the condition of the index: a parameter would not imply it.
  return own ? query.where('is_global', '=', sql.lit(false)).where('account', '=', own) : query
}

/** Restricts a list of subscriptions to the webhooks of an account, with the condition of their index. */
export function keepOwnSubscriptions<Found>(
  query: SelectQueryBuilder<DB, 'webhook_event', Found>,
  own: OwnAccount | undefined,
) {
  return own ? query.where('account', '=', own).where(sql<boolean>`${sql.raw(isNull('deleted_at'))}`) : query
}

/** The webhooks of these accounts. */
export const isWebhookOf: IsOf = (accounts) => sql<boolean>`not is_global and account = any(${[...accounts]}::uuid[])`

/**
 * The rows of the webhooks of these accounts, and those without their webhook: it is the last that a move copies. What was
 * recorded about an account is not of it: global webhooks get its events too.
 */
export const isOfWebhookOf: IsOf = (accounts) => sql<boolean>`
  webhook = any(array(select w.document_id from webhook w where not w.is_global and w.account = any(${[...accounts]}::uuid[])))
  or not exists (select from webhook w where w.document_id = webhook)`

/** The bulk replays of these accounts alone. */
export const isJobOf: IsOf = (accounts) =>
  sql<boolean>`cardinality(accounts) = 1 and accounts[1] = any(${[...accounts]}::uuid[])`

/** Whether the webhook of a row belongs to one of `scope`, looked up by its id: a join may read all webhooks. */
export function isOfOwnWebhook(table: 'webhook_dispatch_ended' | 'webhook_dispatch_open', scope: readonly AccountId[]) {
  return sql<boolean>`(
    select not w.is_global and w.account = any(${[...scope]}::uuid[]) from webhook w
    where w.document_id = ${sql.ref(`${table}.webhook`)})`
}

/**
 * Restricts a list of bulk replays to those whose first account is this one and whose accounts are all in `reach`: an
 * index has the first account, and each such job has one. A job of one account is in the database that has the account
 * (`scope`); one of several stays where it was made, whichever of them moves.
 */
export function keepOwnJobs<Found>(
  query: SelectQueryBuilder<DB, 'replay_job', Found>,
  own: OwnAccount | undefined,
  { scope, reach }: { scope: PermissionScope; reach: PermissionScope },
) {
  if (!own || scope === 'all') return query
  return query.where(sql<boolean>`accounts[1] = ${own} and accounts <@ ${[...reach]}::uuid[]
    and (cardinality(accounts) > 1 or accounts[1] = any(${[...scope]}::uuid[]))`)
}

const selectHidden = columnStatement<
  string,
  { ids: readonly string[]; names: readonly string[]; webhook: string | null }
>(`
  with open as (
    select e.document_id, e.internal from event e
    where (e.document_id = any($ids::uuid[]) or e.internal = any($names)) and (
      (e.account_scope = 'account' and e.is_tenant_visible)
      or exists (select from webhook_event s where s.webhook = $webhook and s.event = e.document_id
        and ${isNull('s.deleted_at')}))
  )
  select x.id::text as entry from unnest($ids::uuid[]) as x (id) where x.id not in (select document_id from open)
  union all
  select x.name from unnest($names::text[]) as x (name) where x.name not in (select internal from open)`)

/** Those of these event types (ids or names) that are hidden from account roles and not subscribed by the webhook. */
export async function listHiddenTypes(
  db: Database,
  { ids, names, webhook }: { ids: readonly string[]; names: readonly string[]; webhook: string | null },
): Promise<ReadonlySet<string>> {
  return new Set(await selectHidden(db, { ids, names, webhook }))
}

import type { AccountId, Id, UserId, WebhookId } from '../../base/id.ts'
import type { EventTypeRecord } from '../../event/catalogue/catalogue.store.ts'
import { writeAtEnd } from '../../postgres/statement/closing.ts'
import { asPart, columnChange } from '../../postgres/statement/column-change.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { compileFragment } from '../../postgres/statement/fragment.ts'
import { statement } from '../../postgres/statement/statement.ts'

/** Why the service disabled a webhook (docs/contract/webhooks.md#webhook). */
export const DISABLED_REASONS = ['consecutive-failures', 'account-deleted', 'legacy-secret-rotation-required'] as const

export type DisabledReason = (typeof DISABLED_REASONS)[number]

/** A row of the `webhook` table, without its secret. */
export interface WebhookRecord {
  id: WebhookId
  url: string
  name: string | null
  description: string | null
  isGlobal: boolean
  account: AccountId | null
  isActived: boolean
  consecutiveFailures: number
  disabledAt: Date | null
  disabledReason: DisabledReason | null
  createdBy: UserId | null
  updatedBy: UserId | null
  createdAt: Date
  updatedAt: Date
  deletedAt: Date | null
}

/** The columns of the public row: everything but the secret, so that no read can leak it. */
const PUBLIC_COLUMNS = [
  'document_id',
  'url',
  'name',
  'description',
  'is_global',
  'account',
  'is_actived',
  'consecutive_failures',
  'disabled_at',
  'disabled_reason',
  'created_by',
  'updated_by',
  'created_at',
  'updated_at',
  'deleted_at',
] as const

/** What `toWebhookRecord` reads of a row. */
export interface WebhookColumns {
  document_id: string
  url: string
  name: string | null
  description: string | null
  is_global: boolean
  account: string | null
  is_actived: boolean
  consecutive_failures: number
  disabled_at: Date | null
  disabled_reason: string | null
  created_by: string | null
  updated_by: string | null
  created_at: Date
  updated_at: Date
  deleted_at: Date | null
}

/** The public columns of the webhook `w`, as SQL. */
export const OF_WEBHOOK = PUBLIC_COLUMNS.map((column) => `w.${column}`).join(', ')

/** Maps a row of the `webhook` table. */
export function toWebhookRecord(row: WebhookColumns): WebhookRecord {
  return {
    id: row.document_id as WebhookId,
    url: row.url,
    name: row.name,
    description: row.description,
    isGlobal: row.is_global,
    account: row.account as AccountId | null,
    isActived: row.is_actived,
    consecutiveFailures: row.consecutive_failures,
    disabledAt: row.disabled_at,
    disabledReason: row.disabled_reason as DisabledReason | null,
    createdBy: row.created_by as UserId | null,
    updatedBy: row.updated_by as UserId | null,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
  }
}

/** The living webhooks, as the base of a list. */
export function selectWebhooks(db: Database) {
  return db.selectFrom('webhook').select(PUBLIC_COLUMNS).where('deleted_at', 'is', null)
}

const FIND = `select ${OF_WEBHOOK} from webhook w where w.document_id = $id and ($withDeleted or w.deleted_at is null)`
const selectOne = statement<WebhookColumns, { id: string; withDeleted: boolean }>(FIND)
const selectAndLock = statement<WebhookColumns, { id: string; withDeleted: boolean }>(`${FIND} for update`)

/** The webhook with this id; `lock` keeps it from changing until the transaction ends. */
export async function findWebhook(
  db: Database,
  id: string,
  options: { withDeleted?: boolean; lock?: boolean } = {},
): Promise<WebhookRecord | undefined> {
  const select = options.lock ? selectAndLock : selectOne
  const [row] = await select(db, { id, withDeleted: options.withDeleted ?? false })
  return row && toWebhookRecord(row)
}

/** What a new webhook may subscribe to: an event type, and whether it is active. */
export type OfferedType = Pick<EventTypeRecord, 'id' | 'internal' | 'accountScope' | 'isActived'>

/** A webhook that is inserted. */
interface NewWebhook {
  id: WebhookId
  url: string
  name: string | null
  description: string | null
  isGlobal: boolean
  account: string | null
  secretEncrypted: string
  /** Ids and names of event types, and as many ids of links. */
  subscriptions: { ids: readonly string[]; names: readonly string[]; links: readonly Id<'subscription'>[] }
  by: UserId | null
  now: Date
}

/** The account of `$account` is locked, so that it is not deleted before the webhook is there. */
const insert = statement<
  WebhookColumns & { types: OfferedType[] },
  Omit<NewWebhook, 'subscriptions'> & NewWebhook['subscriptions']
>(`
  with kept as (
    select from account where document_id = $account and deleted_at is null for share
  ), w as (
    insert into webhook (document_id, url, name, description, is_global, account, secret_encrypted, is_actived, created_by,
      updated_by, created_at, updated_at)
    select $id, $url, $name, $description, $isGlobal, $account::uuid, $secretEncrypted, true, $by, $by, $now, $now
    where $account is null or exists (select from kept)
    returning ${PUBLIC_COLUMNS.join(', ')}
  ), wanted as (
    select e.document_id, e.internal, e.account_scope, e.is_actived, row_number() over (order by e.internal) as n
    from event e where e.document_id = any($ids) or e.internal = any($names)
  ), subscribed as (
    insert into webhook_event (document_id, webhook, event, created_at, updated_at)
    select ($links::uuid[])[e.n], w.document_id, e.document_id, $now, $now from w, wanted e
  )
  select ${OF_WEBHOOK}, array(select json_build_object('id', document_id, 'internal', internal,
    'accountScope', account_scope, 'isActived', is_actived) from wanted order by n) as types from w`)

/**
 * Inserts a webhook, active, without failures, with links to the event types that `subscriptions` names; the caller judges
 * the types that were found, and throws where one must not be linked. Undefined when its account does not exist.
 */
export async function insertWebhook(
  db: Database,
  { subscriptions, ...row }: NewWebhook,
): Promise<{ webhook: WebhookRecord; types: OfferedType[] } | undefined> {
  const [inserted] = await insert(db, { ...row, ...subscriptions })
  return inserted && { webhook: toWebhookRecord(inserted), types: inserted.types }
}

const lockForChange = statement<
  WebhookColumns & { kept: AccountId | null },
  { id: string; isGlobal: boolean | null; isMoved: boolean; account: string | null }
>(`
  with asked as (
    select case when not coalesce($isGlobal, w.is_global) then
      case when $isMoved then $account::uuid else w.account end end as account
    from webhook w where w.document_id = $id and w.deleted_at is null
  ), kept as (
    select a.document_id from account a where a.document_id = (select account from asked) and a.deleted_at is null for share
  ), w as (
    select x.* from webhook x, (select count(*) from kept) locked
    where x.document_id = $id and x.deleted_at is null for update of x
  )
  select ${OF_WEBHOOK}, (select document_id from kept) as kept from w`)

/**
 * Locks a living webhook for a change of its scope: first the account that it will have, as the deletion of an account
 * does, then the webhook. `kept` is that account, null when there is none or it is deleted.
 */
export async function lockWebhookForChange(
  db: Database,
  id: string,
  { isGlobal, account }: { isGlobal?: boolean | undefined; account?: string | null | undefined },
): Promise<{ webhook: WebhookRecord; kept: AccountId | null } | undefined> {
  const [row] = await lockForChange(db, {
    id,
    isGlobal: isGlobal ?? null,
    isMoved: account !== undefined,
    account: account ?? null,
  })
  return row && { webhook: toWebhookRecord(row), kept: row.kept }
}

/** What may change in a webhook. Members left out stay. */
export interface WebhookChange {
  url?: string
  name?: string | null
  description?: string | null
  isGlobal?: boolean
  account?: AccountId | null
  isActived?: boolean
  consecutiveFailures?: number
  disabledAt?: Date | null
  disabledReason?: string | null
  secretEncrypted?: string
  by?: UserId
}

const changeColumns = columnChange<WebhookChange & { now: Date }>('webhook', {
  url: 'url = $url',
  name: 'name = $name',
  description: 'description = $description',
  isGlobal: 'is_global = $isGlobal',
  account: 'account = $account',
  isActived: 'is_actived = $isActived',
  consecutiveFailures: 'consecutive_failures = $consecutiveFailures',
  disabledAt: 'disabled_at = $disabledAt',
  disabledReason: 'disabled_reason = $disabledReason',
  secretEncrypted: 'secret_encrypted = $secretEncrypted',
  by: 'updated_by = $by',
  now: 'updated_at = $now',
})

/** Changes a webhook. */
export async function updateWebhook(db: Database, id: WebhookId, change: WebhookChange, now: Date): Promise<void> {
  await db.executeQuery(compileFragment(changeColumns(id, { ...change, now })))
}

/** Changes a locked webhook with the last statement of the transaction. Returns the row behind the change. */
export async function changeLockedWebhook(
  db: Database,
  webhook: WebhookRecord,
  change: Pick<WebhookChange, 'url' | 'name' | 'description' | 'isGlobal' | 'account'> & { by: UserId },
  now: Date,
): Promise<WebhookRecord> {
  const parts = asPart('changed_webhook', changeColumns(webhook.id, { ...change, now }))
  // The owner is copied to the subscriptions, which is a change of them.
  const isMoved = change.account !== undefined || change.isGlobal !== undefined
  await writeAtEnd(db, { parts, ...(isMoved && { notes: 'r' }) })
  const { by, ...columns } = change
  return { ...webhook, ...columns, updatedBy: by, updatedAt: now }
}

const lockFree = statement<WebhookColumns, { ids: readonly WebhookId[] }>(`
  select ${OF_WEBHOOK} from webhook w where w.document_id = any($ids::uuid[])
  order by w.document_id for no key update skip locked`)

/** Locks webhooks until the transaction ends; passes over those that another transaction has locked. */
export async function lockFreeWebhooks(db: Database, ids: readonly WebhookId[]): Promise<WebhookRecord[]> {
  return (await lockFree(db, { ids })).map(toWebhookRecord)
}

/** Those of the webhooks that exist, deleted ones included. */
export async function listExisting(db: Database, ids: readonly WebhookId[]): Promise<WebhookId[]> {
  const rows = await db.selectFrom('webhook').select('document_id').where('document_id', 'in', ids).execute()
  return rows.map((row) => row.document_id as WebhookId)
}

/** The encrypted secret of a living webhook with this URL, the oldest first: for the development sink. */
export async function findSecretsByUrl(
  db: Database,
  url: string,
): Promise<{ id: WebhookId; secretEncrypted: string }[]> {
  const rows = await db
    .selectFrom('webhook')
    .select(['document_id', 'secret_encrypted'])
    .where('url', '=', url)
    .where('deleted_at', 'is', null)
    .where('secret_encrypted', 'is not', null)
    .orderBy('created_at')
    .limit(20)
    .execute()
  return rows.map((row) => ({ id: row.document_id as WebhookId, secretEncrypted: row.secret_encrypted as string }))
}

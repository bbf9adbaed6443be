import type { AccountId, Id, UserId, WebhookId } from '../../base/id.ts'
import type { EventTypeRecord } from '../../event/catalogue/catalogue.store.ts'
import { columnsOf, wireOf } from '../../http/shape/wire-row.ts'
import { writeAtEnd } from '../../postgres/statement/closing.ts'
import { asPart, columnChange } from '../../postgres/statement/column-change.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { compileFragment } from '../../postgres/statement/fragment.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, columnStatement, rowStatement, statement } from '../../postgres/statement/statement.ts'
import { type DisabledReason, type WebhookMode, WebhookRow } from './webhook.schema.ts'

/** A webhook: every column that the API shows, so that no read can leak its secret. */
export const webhook = defineRecord('webhook', columnsOf(WebhookRow)).typed<{
  account: AccountId | null
  mode: WebhookMode
  disabledReason: DisabledReason | null
  contacts: string[]
}>()
export type WebhookRecord = RecordOf<typeof webhook>
export const toWebhookRow = wireOf(webhook, WebhookRow)

/** The existing webhooks, as the base of a list. */
export function selectWebhooks(db: Database) {
  return selectRecord(db.selectFrom('webhook'), webhook).where('deleted_at', 'is', null)
}

const FIND = `select ${webhook.members('w')} from webhook w where w.document_id = $id and ($withDeleted or w.deleted_at is null)`
const selectOne = rowStatement<WebhookRecord, { id: string; withDeleted: boolean }>(FIND)
const selectAndLock = rowStatement<WebhookRecord, { id: string; withDeleted: boolean }>(`${FIND} for update`)

/** The webhook with this id; `lock` locks it until the transaction ends. */
export function findWebhook(
  db: Database,
  id: string,
  options: { withDeleted?: boolean; lock?: boolean } = {},
): Promise<WebhookRecord | undefined> {
  const select = options.lock ? selectAndLock : selectOne
  return select(db, { id, withDeleted: options.withDeleted ?? false })
}

/** Event type of a new webhook, and whether it is active. */
export type OfferedType = Pick<EventTypeRecord, 'id' | 'internal' | 'accountScope' | 'isActived' | 'deprecationRemedy'>

interface NewWebhook {
  id: WebhookId
  /** Default: `push`. */
  mode?: WebhookMode
  url: string
  name: string | null
  description: string | null
  isGlobal: boolean
  account: string | null
  resourceIds: readonly string[] | null
  headerNames: readonly string[]
  contacts: readonly string[]
  headersEncrypted: string | null
  publicKey: string | null
  signingKeyEncrypted: string | null
  maxPerSecond: number | null
  secretEncrypted: string
  /** Ids and names of event types, and as many ids of links. */
  subscriptions: { ids: readonly string[]; names: readonly string[]; links: readonly Id<'subscription'>[] }
  by: UserId | null
  now: Date
}

/** The account of `$account` is locked, so that it cannot be deleted before the webhook is inserted. */
const insert = rowStatement<
  WebhookRecord & { types: OfferedType[] },
  Omit<Required<NewWebhook>, 'subscriptions'> & NewWebhook['subscriptions']
>(`
  with kept as (
    select from account where document_id = $account and deleted_at is null for share
  ), w as (
    insert into webhook (document_id, mode, url, name, description, is_global, account, resource_ids, header_names,
      headers_encrypted, contacts, public_key, signing_key_encrypted, max_per_second, secret_encrypted, is_actived, created_by,
      updated_by, created_at, updated_at)
    select $id, $mode, $url, $name, $description, $isGlobal, $account::uuid, $resourceIds::text[], $headerNames::text[],
      $headersEncrypted, $contacts::uuid[], $publicKey, $signingKeyEncrypted, $maxPerSecond::int, $secretEncrypted, true, $by,
      $by, $now, $now
    where $account is null or exists (select from kept)
    returning ${webhook.select()}
  ), wanted as (
    select e.document_id, e.internal, e.account_scope, e.is_actived, e.deprecation_remedy,
      row_number() over (order by e.internal) as n
    from event e where e.document_id = any($ids) or e.internal = any($names)
  ), subscribed as (
    insert into webhook_event (document_id, webhook, event, created_at, updated_at)
    select ($links::uuid[])[e.n], w.document_id, e.document_id, $now, $now from w, wanted e
  )
  select ${webhook.members('w')}, array(select json_build_object('id', document_id, 'internal', internal,
    'accountScope', account_scope, 'isActived', is_actived, 'deprecationRemedy', deprecation_remedy) from wanted order by n) as types from w`)

/** Inserts an active webhook with links to `subscriptions`, which the caller checks. Undefined: unknown account. */
export async function insertWebhook(
  db: Database,
  { subscriptions, mode = 'push', ...row }: NewWebhook,
): Promise<{ webhook: WebhookRecord; types: OfferedType[] } | undefined> {
  const inserted = await insert(db, { ...row, mode, ...subscriptions })
  if (!inserted) return undefined
  const { types, ...created } = inserted
  return { webhook: created, types }
}

const lockForChange = rowStatement<
  WebhookRecord & { kept: AccountId | null },
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
  select ${webhook.members('w')}, (select document_id from kept) as kept from w`)

/** Locks a webhook for a change of its scope, its new account first; `kept` is that account, null without one. */
export async function lockWebhookForChange(
  db: Database,
  id: string,
  { isGlobal, account }: { isGlobal?: boolean | undefined; account?: string | null | undefined },
): Promise<{ webhook: WebhookRecord; kept: AccountId | null } | undefined> {
  const row = await lockForChange(db, {
    id,
    isGlobal: isGlobal ?? null,
    isMoved: account !== undefined,
    account: account ?? null,
  })
  if (!row) return undefined
  const { kept, ...locked } = row
  return { webhook: locked, kept }
}

export interface WebhookChange {
  url?: string
  name?: string | null
  description?: string | null
  isGlobal?: boolean
  account?: AccountId | null
  resourceIds?: string[] | null
  headerNames?: string[]
  contacts?: string[]
  headersEncrypted?: string | null
  publicKey?: string | null
  signingKeyEncrypted?: string | null
  previousPublicKey?: string | null
  previousPublicKeyUntil?: Date | null
  maxPerSecond?: number | null
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
  resourceIds: 'resource_ids = $resourceIds',
  headerNames: 'header_names = $headerNames',
  headersEncrypted: 'headers_encrypted = $headersEncrypted',
  contacts: 'contacts = $contacts::uuid[]',
  publicKey: 'public_key = $publicKey',
  signingKeyEncrypted: 'signing_key_encrypted = $signingKeyEncrypted',
  previousPublicKey: 'previous_public_key = $previousPublicKey',
  previousPublicKeyUntil: 'previous_public_key_until = $previousPublicKeyUntil',
  maxPerSecond: 'max_per_second = $maxPerSecond',
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

type LockedChange = Pick<
  WebhookChange,
  | 'url'
  | 'name'
  | 'description'
  | 'isGlobal'
  | 'account'
  | 'resourceIds'
  | 'headerNames'
  | 'headersEncrypted'
  | 'contacts'
  | 'publicKey'
  | 'signingKeyEncrypted'
  | 'previousPublicKey'
  | 'previousPublicKeyUntil'
  | 'maxPerSecond'
> & { by: UserId }

const endNotices = closingStatement<{ id: WebhookId }>(
  'ended_notices as (delete from webhook_mail_notice where webhook = $id)',
)

/** Changes a locked webhook with the last statement, and ends the mails' notices to a former owner. Returns the row. */
export async function changeLockedWebhook(
  db: Database,
  before: WebhookRecord,
  { headersEncrypted, signingKeyEncrypted, ...change }: LockedChange,
  now: Date,
): Promise<WebhookRecord> {
  const sealed = {
    ...(headersEncrypted !== undefined && { headersEncrypted }),
    ...(signingKeyEncrypted !== undefined && { signingKeyEncrypted }),
  }
  const parts = asPart('changed_webhook', changeColumns(before.id, { ...change, ...sealed, now }))
  // The owner is copied to the subscriptions, which is a change of them.
  const isMoved = change.account !== undefined || change.isGlobal !== undefined
  await writeAtEnd(db, { parts, ...(isMoved && { invalidations: 'r' }) })
  if (isMoved) await endNotices(db, { id: before.id })
  const { by, ...columns } = change
  return { ...before, ...columns, updatedBy: by, updatedAt: now }
}

/** Locks webhooks until the transaction ends; skips those locked by another transaction. */
export const lockFreeWebhooks = statement<WebhookRecord, { ids: readonly WebhookId[] }>(`
  select ${webhook.members('w')} from webhook w where w.document_id = any($ids::uuid[])
  order by w.document_id for no key update skip locked`)

/** The stored ones of the webhooks, including deleted ones. */
export const listExisting = columnStatement<WebhookId, { ids: readonly WebhookId[] }>(
  'select document_id from webhook where document_id = any($ids::uuid[])',
)

/** The encrypted secrets of the existing webhooks with this URL, the oldest first: for the development sink. */
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

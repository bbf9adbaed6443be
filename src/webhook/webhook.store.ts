import { sql } from 'kysely'
import type { AccountId, UserId, WebhookId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { aheadStatement, statement } from '../postgres/statement.ts'

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
  disabledReason: string | null
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

interface WebhookColumns {
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

/** The public columns, as SQL. */
const RETURNED = PUBLIC_COLUMNS.join(', ')

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
    disabledReason: row.disabled_reason,
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

const FIND = `select ${RETURNED} from webhook where document_id = $1 and ($2 or deleted_at is null)`
const selectOne = statement<WebhookColumns>(FIND)
const selectAndLock = statement<WebhookColumns>(`${FIND} for update`)

/** The webhook with this id; `lock` keeps it from changing until the transaction ends. */
export async function findWebhook(
  db: Database,
  id: string,
  options: { withDeleted?: boolean; lock?: boolean } = {},
): Promise<WebhookRecord | undefined> {
  const select = options.lock ? selectAndLock : selectOne
  const [row] = await select(db, [id, options.withDeleted ?? false])
  return row && toWebhookRecord(row)
}

/** Inserts a webhook, active, without failures. */
export async function insertWebhook(
  db: Database,
  row: {
    id: WebhookId
    url: string
    name: string | null
    description: string | null
    isGlobal: boolean
    account: AccountId | null
    secretEncrypted: string
    by: UserId | null
    now: Date
  },
): Promise<WebhookRecord> {
  const inserted = await db
    .insertInto('webhook')
    .values({
      document_id: row.id,
      url: row.url,
      name: row.name,
      description: row.description,
      is_global: row.isGlobal,
      account: row.account,
      secret_encrypted: row.secretEncrypted,
      is_actived: true,
      created_by: row.by,
      updated_by: row.by,
      created_at: row.now,
      updated_at: row.now,
    })
    .returning(PUBLIC_COLUMNS)
    .executeTakeFirstOrThrow()
  return toWebhookRecord(inserted)
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
  deletedAt?: Date
  by?: UserId
}

/** Changes a webhook. */
export async function updateWebhook(
  db: Database,
  id: WebhookId,
  change: WebhookChange,
  now: Date,
): Promise<WebhookRecord> {
  const updated = await db
    .updateTable('webhook')
    .set({
      ...(change.url !== undefined && { url: change.url }),
      ...(change.name !== undefined && { name: change.name }),
      ...(change.description !== undefined && { description: change.description }),
      ...(change.isGlobal !== undefined && { is_global: change.isGlobal }),
      ...(change.account !== undefined && { account: change.account }),
      ...(change.isActived !== undefined && { is_actived: change.isActived }),
      ...(change.consecutiveFailures !== undefined && { consecutive_failures: change.consecutiveFailures }),
      ...(change.disabledAt !== undefined && { disabled_at: change.disabledAt }),
      ...(change.disabledReason !== undefined && { disabled_reason: change.disabledReason }),
      ...(change.secretEncrypted !== undefined && { secret_encrypted: change.secretEncrypted }),
      ...(change.deletedAt !== undefined && { deleted_at: change.deletedAt }),
      ...(change.by !== undefined && { updated_by: change.by }),
      updated_at: now,
    })
    .where('document_id', '=', id)
    .returning(PUBLIC_COLUMNS)
    .executeTakeFirstOrThrow()
  return toWebhookRecord(updated)
}

/** Who changes a webhook, and when. */
interface By {
  by: UserId
  now: Date
}

const CHANGED = 'updated_by = $2, updated_at = $3'
const LIVING = 'document_id = $1 and deleted_at is null'

const deactivate = statement<WebhookColumns>(
  `update webhook set is_actived = false, ${CHANGED} where ${LIVING} and is_actived returning ${RETURNED}`,
)

/** Makes an active, living webhook inactive. Undefined when there is none with this id. */
export async function deactivateIfActive(db: Database, id: string, { by, now }: By): Promise<WebhookRecord | undefined> {
  const [row] = await deactivate(db, [id, by, now])
  return row && toWebhookRecord(row)
}

const lock = aheadStatement(`select from webhook where ${LIVING} for update`)

const activate = statement<WebhookColumns>(`
  update webhook set is_actived = true, consecutive_failures = 0, disabled_at = null, disabled_reason = null, ${CHANGED}
  where ${LIVING}
    and (not is_actived or consecutive_failures > 0 or disabled_at is not null or disabled_reason is not null)
    and (account is null or exists (select from account a where a.document_id = webhook.account and a.deleted_at is null))
  returning ${RETURNED}`)

/**
 * Makes a living webhook active and clears its failures. Undefined when there is none, when it is like that already, or
 * when its account is deleted. The webhook is locked before its account is looked at: the deletion of an account waits for
 * this lock and then makes the webhook inactive.
 */
export async function activateIfDifferent(
  db: Database,
  id: string,
  { by, now }: By,
): Promise<WebhookRecord | undefined> {
  await lock(db, [id])
  const [row] = await activate(db, [id, by, now])
  return row && toWebhookRecord(row)
}

const rotate = statement<WebhookColumns>(
  `update webhook set secret_encrypted = $4, ${CHANGED} where ${LIVING} returning ${RETURNED}`,
)

/** Gives a living webhook another secret. Undefined when there is none with this id. */
export async function rotateSecretOf(
  db: Database,
  id: string,
  { secretEncrypted, by, now }: By & { secretEncrypted: string },
): Promise<WebhookRecord | undefined> {
  const [row] = await rotate(db, [id, by, now, secretEncrypted])
  return row && toWebhookRecord(row)
}

const markDeleted = statement<WebhookColumns>(`
  with locked as materialized (select document_id from webhook where ${LIVING} for update)
  update webhook w set deleted_at = $3, ${CHANGED} from locked where w.document_id = locked.document_id
  returning ${PUBLIC_COLUMNS.map((column) => `w.${column}`).join(', ')}`)

/**
 * Soft-deletes a living webhook. Undefined when there is none with this id. The lock is that of a row that goes, so that
 * what the router is writing for the webhook is written when this returns.
 */
export async function softDeleteWebhook(db: Database, id: string, { by, now }: By): Promise<WebhookRecord | undefined> {
  const [row] = await markDeleted(db, [id, by, now])
  return row && toWebhookRecord(row)
}

const deactivateAll = aheadStatement(`
  update webhook set is_actived = false, disabled_at = $3, disabled_reason = $4, ${CHANGED}
  where document_id in (
    select document_id from webhook where account = $1 and deleted_at is null order by document_id for no key update)`)

/**
 * Makes the living webhooks of an account inactive for `reason`, whatever they were before; sent with the next statement.
 * Locks them in the order of their ids, as all who lock several do. Those that are inactive already are locked too, or one
 * that is activated meanwhile would be missed.
 */
export async function deactivateAccountWebhooks(
  db: Database,
  account: AccountId,
  { reason, by, now }: By & { reason: string },
): Promise<void> {
  await deactivateAll(db, [account, by, now, reason])
}

/** Deletes a webhook with its subscriptions, ledger and attempts. */
export async function deleteWebhookForGood(db: Database, id: WebhookId): Promise<void> {
  await db.deleteFrom('webhook').where('document_id', '=', id).execute()
}

/**
 * Locks webhooks until the transaction ends, in the order of their ids so that two transactions never wait for each
 * other: those of `always`, and those of `withFailures` that have failed before. The lock lets the router go on writing
 * rows for them (it holds their keys only).
 */
export async function lockWebhooks(
  db: Database,
  ids: { always: readonly WebhookId[]; withFailures: readonly WebhookId[] },
): Promise<WebhookRecord[]> {
  const { rows } = await sql<WebhookColumns>`
    select ${sql.join(PUBLIC_COLUMNS.map((column) => sql.ref(column)))} from webhook
    where document_id = any(${ids.always}::uuid[])
      or (document_id = any(${ids.withFailures}::uuid[]) and consecutive_failures > 0)
    order by document_id for no key update`.execute(db)
  return rows.map(toWebhookRecord)
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

/** Encrypted secrets that do not begin with `prefix`, in the order of ids, after `after`; locked until the transaction ends. */
export async function listStaleSecrets(
  db: Database,
  input: { prefix: string; after: WebhookId | null; limit: number },
): Promise<{ id: WebhookId; secretEncrypted: string }[]> {
  const { rows } = await sql<{ id: WebhookId; secretEncrypted: string }>`
    select document_id as id, secret_encrypted as "secretEncrypted" from webhook
    where secret_encrypted is not null and not starts_with(secret_encrypted, ${input.prefix})
      and (${input.after}::uuid is null or document_id > ${input.after}::uuid)
    order by document_id limit ${input.limit} for update`.execute(db)
  return rows
}

/** Replaces the encrypted form of a secret; the secret itself and the row's times stay. */
export async function replaceSecret(db: Database, id: WebhookId, secretEncrypted: string): Promise<void> {
  await db.updateTable('webhook').set({ secret_encrypted: secretEncrypted }).where('document_id', '=', id).execute()
}

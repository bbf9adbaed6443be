import type { Caller } from '../http/caller.ts'
import { invalidField, notFound, Problem } from '../http/problem.ts'
import type { AccountId, IdMaker, UserId, WebhookId } from '../id.ts'
import type { Keyring } from '../keyring.ts'
import { type CallbackRules, checkCallbackUrl } from '../outbound/callback-url.ts'
import type { Lookup } from '../outbound/dns.ts'
import { checkRegistrationDns } from '../outbound/resolve.ts'
import { createSecret } from '../outbound/signature.ts'
import type { Database } from '../postgres/database.ts'
import type { Random } from '../random.ts'
import { subscribeToTest } from './subscription.ts'
import {
  deactivateAccountWebhooks,
  deleteWebhookForGood,
  findWebhook,
  insertWebhook,
  updateWebhook,
  type WebhookChange,
  type WebhookRecord,
} from './webhook.store.ts'

/** `disabled_reason` of the webhooks of a deleted account. */
const ACCOUNT_DELETED_REASON = 'account-deleted'

/** What the operations on webhooks use. */
export interface WebhookDeps {
  ids: IdMaker
  random: Random
  keyring: Keyring
  callbackRules: CallbackRules
  lookup: Lookup
  /** Keeps the account until the transaction ends. Throws a 422 on `account` when there is no such account. */
  checkAccountExists: (db: Database, account: string) => Promise<AccountId>
  /** Which of these ids are existing accounts. */
  findExistingAccounts: (db: Database, ids: readonly string[]) => Promise<Set<string>>
  /** Ends the waiting deliveries of a webhook that goes (docs/contract/delivery.md#holding), in the transaction that deletes it. */
  cancelWaitingDispatches: (db: Database, webhook: WebhookId, now: Date) => Promise<void>
  /** Deletes the ledger of a webhook that is purged, in the same transaction, however long it is. */
  deleteLedger: (db: Database, webhook: WebhookId) => Promise<void>
}

/** The context under which a webhook's secret is sealed: a box of one row does not open on another. */
export function secretContextOf(id: WebhookId): string {
  return `webhook:${id}`
}

/** The living webhook with this id, or a 404. A change locks it, so that two changes follow each other. */
export async function loadWebhook(
  db: Database,
  id: string,
  options: { withDeleted?: boolean; lock?: boolean } = {},
): Promise<WebhookRecord> {
  const webhook = await findWebhook(db, id, options)
  if (!webhook) throw notFound('webhook')
  return webhook
}

/**
 * Applies the URL rules, and asks the name service (docs/contract/webhooks.md#url-rules). A name server may take seconds,
 * so this runs outside any transaction. Throws a 422 on `url`.
 */
export async function checkNewUrl(deps: Pick<WebhookDeps, 'lookup' | 'callbackRules'>, url: string): Promise<void> {
  const resolved = await checkRegistrationDns({ lookup: deps.lookup }, checkUrl(deps, url), deps.callbackRules)
  if (!resolved.ok) throw invalidField('url', resolved.code, resolved.message)
}

/** Applies the URL rules alone: for a URL that stays as it is. Throws a 422 on `url`. */
function checkUrl(deps: Pick<WebhookDeps, 'callbackRules'>, url: string): URL {
  const checked = checkCallbackUrl(url, deps.callbackRules)
  if (!checked.ok) throw invalidField('url', checked.code, checked.message)
  return checked.url
}

/**
 * What an update is prepared with: the webhook as it is, its URL checked. The rules hold for the URL that the row will
 * have, whatever the update changes; the name service is asked about a new one only. Throws 404, and a 422 on `url`.
 */
export async function prepareChange(
  deps: WebhookDeps,
  db: Database,
  input: { id: string; url?: string },
): Promise<WebhookRecord> {
  const webhook = await loadWebhook(db, input.id)
  if (input.url === undefined || input.url === webhook.url) checkUrl(deps, webhook.url)
  else await checkNewUrl(deps, input.url)
  return webhook
}

/** The account a webhook is scoped to: none when global, else one that exists (docs/contract/webhooks.md#webhook). */
async function checkScope(
  deps: WebhookDeps,
  db: Database,
  scope: { isGlobal: boolean; account: string | null },
): Promise<AccountId | null> {
  if (scope.isGlobal) return null
  if (scope.account === null)
    throw invalidField('account', 'required', 'is required when is_global is false; give the id of an existing account')
  return deps.checkAccountExists(db, scope.account)
}

/** What a caller may say of a new webhook. */
export interface CreateWebhookInput {
  url: string
  name: string | null
  description: string | null
  isGlobal: boolean
  account: string | null
  caller: Pick<Caller, 'userId'> | null
  now: Date
}

/** Creates a webhook whose URL was checked: active, subscribed to `webhook.test`. Its secret is in this answer only. */
export async function createWebhook(
  deps: WebhookDeps,
  db: Database,
  input: CreateWebhookInput,
): Promise<{ webhook: WebhookRecord; secret: string }> {
  const account = await checkScope(deps, db, input)
  const id = deps.ids.next<'webhook'>()
  const secret = createSecret(deps.random)
  const webhook = await insertWebhook(db, {
    id,
    url: input.url,
    name: input.name,
    description: input.description,
    isGlobal: input.isGlobal,
    account,
    secretEncrypted: deps.keyring.seal(secret, secretContextOf(id)),
    by: input.caller?.userId ?? null,
    now: input.now,
  })
  await subscribeToTest(deps, db, webhook.id, input.now)
  return { webhook, secret }
}

/** What a caller may change of a webhook. */
export interface ChangeWebhookInput {
  url?: string
  name?: string | null
  description?: string | null
  isGlobal?: boolean
  account?: string | null
  caller: Caller
  now: Date
}

/**
 * Changes a webhook that `prepareChange` has checked. The account is locked before the webhook, as the deletion of an
 * account does.
 * Returns `isChanged` false when nothing differs. Throws a 422 on `url` or `account`, and a 404 when the webhook was deleted
 * in between.
 */
export async function changeWebhook(
  deps: WebhookDeps,
  db: Database,
  webhook: WebhookRecord,
  input: ChangeWebhookInput,
): Promise<{ webhook: WebhookRecord; isChanged: boolean }> {
  const scopeOf = (one: WebhookRecord) => ({
    isGlobal: input.isGlobal ?? one.isGlobal,
    account: input.account === undefined ? one.account : input.account,
  })
  const expected = scopeOf(webhook)
  const checked = await checkScope(deps, db, expected)
  const current = await loadWebhook(db, webhook.id, { lock: true })
  const scope = scopeOf(current)
  const isAsExpected = scope.isGlobal === expected.isGlobal && scope.account === expected.account
  const account = isAsExpected ? checked : await checkScope(deps, db, scope)
  const change = findChange(current, { ...input, isGlobal: scope.isGlobal, account })
  if (Object.keys(change).length === 0) return { webhook: current, isChanged: false }
  const updated = await updateWebhook(db, webhook.id, { ...change, by: input.caller.userId }, input.now)
  return { webhook: updated, isChanged: true }
}

/** The columns of an update that differ. */
function findChange(
  current: WebhookRecord,
  wanted: Pick<ChangeWebhookInput, 'url' | 'name' | 'description'> & { isGlobal: boolean; account: AccountId | null },
): WebhookChange {
  const { url = current.url, name = current.name, description = current.description, isGlobal, account } = wanted
  return {
    ...(url !== current.url && { url }),
    ...(name !== current.name && { name }),
    ...(description !== current.description && { description }),
    ...(isGlobal !== current.isGlobal && { isGlobal }),
    ...(account !== current.account && { account }),
  }
}

/**
 * Activates or deactivates a locked webhook. Activating clears the failure count and what disabled it (docs/contract/delivery.md#statuses).
 * Returns undefined when nothing differs. Throws 409 for activating a webhook whose account is deleted.
 */
export async function setWebhookActive(
  deps: Pick<WebhookDeps, 'findExistingAccounts'>,
  db: Database,
  input: { webhook: WebhookRecord; isActived: boolean; caller: Caller; now: Date },
): Promise<WebhookRecord | undefined> {
  const { webhook, isActived, caller, now } = input
  const by = caller.userId
  if (!isActived) return webhook.isActived ? updateWebhook(db, webhook.id, { isActived, by }, now) : undefined
  const isClear = webhook.consecutiveFailures === 0 && webhook.disabledAt === null && webhook.disabledReason === null
  if (webhook.isActived && isClear) return undefined
  await checkAccountLives(deps, db, webhook)
  const cleared = { consecutiveFailures: 0, disabledAt: null, disabledReason: null }
  return updateWebhook(db, webhook.id, { isActived, ...cleared, by }, now)
}

/** The deletion of an account waits for this webhook's lock and then makes it inactive, so reading is enough here. */
async function checkAccountLives(
  deps: Pick<WebhookDeps, 'findExistingAccounts'>,
  db: Database,
  { account }: WebhookRecord,
): Promise<void> {
  if (account === null || (await deps.findExistingAccounts(db, [account])).has(account)) return
  const text = 'The account of this webhook was deleted. Give the webhook another account, or make it global, first.'
  throw new Problem('conflict', text)
}

/** Makes the webhooks of an account that is deleted inactive, in the transaction that deletes it. Waiting rows rest. */
export function deactivateWebhooksOf(
  db: Database,
  account: AccountId,
  change: { by: UserId; now: Date },
): Promise<void> {
  return deactivateAccountWebhooks(db, account, { ...change, reason: ACCOUNT_DELETED_REASON })
}

/** Replaces the secret. The old one is invalid at once (docs/contract/delivery.md#statuses); waiting deliveries are signed with the new one. */
export async function rotateSecret(
  deps: WebhookDeps,
  db: Database,
  webhook: WebhookRecord,
  input: { caller: Caller; now: Date },
): Promise<{ webhook: WebhookRecord; secret: string }> {
  const secret = createSecret(deps.random)
  const secretEncrypted = deps.keyring.seal(secret, secretContextOf(webhook.id))
  const updated = await updateWebhook(db, webhook.id, { secretEncrypted, by: input.caller.userId }, input.now)
  return { webhook: updated, secret }
}

/** Soft-deletes: the ledger stays, what waits in it is cancelled (docs/contract/delivery.md#holding). */
export async function deleteWebhook(
  deps: WebhookDeps,
  db: Database,
  webhook: WebhookRecord,
  input: { caller: Caller; now: Date },
): Promise<WebhookRecord> {
  await deps.cancelWaitingDispatches(db, webhook.id, input.now)
  return updateWebhook(db, webhook.id, { deletedAt: input.now, by: input.caller.userId }, input.now)
}

/** Deletes the webhook and its ledger for good, whether it was soft-deleted before or not. */
export async function purgeWebhook(
  deps: Pick<WebhookDeps, 'deleteLedger'>,
  db: Database,
  webhook: WebhookRecord,
): Promise<void> {
  await deps.deleteLedger(db, webhook.id)
  await deleteWebhookForGood(db, webhook.id)
}

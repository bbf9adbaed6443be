import type { Caller } from '../http/caller.ts'
import { invalidField, notFound } from '../http/problem.ts'
import type { AccountId, IdMaker, WebhookId } from '../id.ts'
import type { Keyring } from '../keyring.ts'
import { type CallbackRules, checkCallbackUrl } from '../outbound/callback-url.ts'
import type { Lookup } from '../outbound/dns.ts'
import { checkRegistrationDns } from '../outbound/resolve.ts'
import { createSecret } from '../outbound/signature.ts'
import type { Database } from '../postgres/database.ts'
import type { Random } from '../random.ts'
import { subscribeToTest } from './subscription.ts'
import { deleteWebhookForGood, findWebhook, insertWebhook, updateWebhook, type WebhookRecord } from './webhook.store.ts'

/** What the operations on webhooks use. */
export interface WebhookDeps {
  ids: IdMaker
  random: Random
  keyring: Keyring
  callbackRules: CallbackRules
  lookup: Lookup
  /** Throws a 422 on `account` when there is no such account. */
  checkAccountExists: (db: Database, account: string) => Promise<AccountId>
  /** Ends the waiting deliveries of a webhook that goes (D65), in the transaction that deletes it. */
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

/** Applies the URL rules of the contract, and asks the name service as well as that goes (D74). Throws a 422 on `url`. */
async function checkUrl(deps: WebhookDeps, url: string): Promise<void> {
  const checked = checkCallbackUrl(url, deps.callbackRules)
  if (!checked.ok) throw invalidField('url', checked.code, checked.message)
  const resolved = await checkRegistrationDns({ lookup: deps.lookup }, checked.url, deps.callbackRules)
  if (!resolved.ok) throw invalidField('url', resolved.code, resolved.message)
}

/** The account a webhook is scoped to: none when global, else one that exists (contract, Webhook). */
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

/** Creates a webhook, active, subscribed to `webhook.test`; its secret is in this answer only. */
export async function createWebhook(
  deps: WebhookDeps,
  db: Database,
  input: CreateWebhookInput,
): Promise<{ webhook: WebhookRecord; secret: string }> {
  await checkUrl(deps, input.url)
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

/**
 * Changes a webhook. The URL rules hold for the row as it will be, whatever the update changes: one that no longer
 * passes them is refused until its URL is mended (contract, URL rules). The row is locked after the name service was
 * asked, never meanwhile: the router and the results of running POSTs would wait for somebody's dead name server (D73).
 * Throws a 422 on `url` or `account`, and a 404 when the webhook was deleted in between.
 */
export async function changeWebhook(
  deps: WebhookDeps,
  db: Database,
  webhook: WebhookRecord,
  input: {
    url?: string
    name?: string | null
    description?: string | null
    isGlobal?: boolean
    account?: string | null
    caller: Caller
    now: Date
  },
): Promise<WebhookRecord> {
  await checkUrl(deps, input.url ?? webhook.url)
  const current = await loadWebhook(db, webhook.id, { lock: true })
  const { isGlobal = current.isGlobal, account = current.account, caller, now } = input
  const scoped = await checkScope(deps, db, { isGlobal, account })
  return updateWebhook(
    db,
    webhook.id,
    {
      ...(input.url !== undefined && { url: input.url }),
      isGlobal,
      account: scoped,
      ...(input.name !== undefined && { name: input.name }),
      ...(input.description !== undefined && { description: input.description }),
      by: caller.userId,
    },
    now,
  )
}

/** Activates or deactivates. Activating clears the failure count and what disabled it (contract, States). */
export function setWebhookActive(
  db: Database,
  webhook: WebhookRecord,
  input: { isActived: boolean; caller: Caller; now: Date },
): Promise<WebhookRecord> {
  const cleared = input.isActived ? { consecutiveFailures: 0, disabledAt: null, disabledReason: null } : {}
  return updateWebhook(db, webhook.id, { isActived: input.isActived, ...cleared, by: input.caller.userId }, input.now)
}

/** Replaces the secret. The old one is invalid at once (contract, States); waiting deliveries are signed with the new one. */
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

/** Soft-deletes: the ledger stays, what waits in it is cancelled (D65). */
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

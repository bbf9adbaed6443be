import { isDeepStrictEqual } from 'node:util'
import type { AccountId, IdMaker, UserId, WebhookId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { Random } from '../../base/random.ts'
import { type CallbackDeps, checkNewUrl } from '../../delivery/post/callback-field.ts'
import { invalidField, orNotFound, Problem } from '../../http/problem/problem.ts'
import type { RowChange } from '../../http/route/row-route.ts'
import type { Caller } from '../../http/shape/caller.ts'
import type { AccountLimiter } from '../../identity/account/limit/account-limit.ts'
import { createSecret } from '../../outbound/signature.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { resolveEntries, splitEntries } from '../envelope/event-entry.ts'
import { buildUnsynced, findWarnings, type SubscriptionWarning, TEST_EVENT } from '../event-set/subscription.ts'
import { checkContacts, findContacts } from '../mail/contacts.ts'
import { checkKeptTarget, pickTarget, type WebhookTarget } from './mode.ts'
import { checkHeadersStay, findHeaderChange, type OwnHeaders, sealHeaders } from './own-headers.ts'
import { buildKeyColumns, findKeyChange } from './signing-key.ts'
import {
  changeLockedWebhook,
  findWebhook,
  insertWebhook,
  lockWebhookForChange,
  type WebhookChange,
  type WebhookRecord,
} from './webhook.store.ts'
import {
  activateIfDifferent,
  deactivateAccountWebhooks,
  deactivateIfActive,
  deleteWebhookForGood,
  rotateSecretOf,
  softDeleteWebhook,
} from './webhook-state.store.ts'

/** `disabled_reason` of the webhooks of a deleted account. */
const ACCOUNT_DELETED_REASON = 'account-deleted'

export interface WebhookDeps extends CallbackDeps {
  ids: IdMaker
  random: Random
  keyring: Keyring
  accountLimits: Pick<AccountLimiter, 'lockRoom'>
  /** Where the members of accounts are; undefined: in the database of the webhook. */
  homeDb?: Database | undefined
  /** Locks the account until the transaction ends. Throws a 422 on `account` for an unknown account. */
  checkAccountExists: (db: Database, account: string) => Promise<AccountId>
  /** Cancels the waiting deliveries of a webhook in its deletion (docs/contract/delivery.md#holding). */
  cancelWaitingDispatches: (db: Database, webhook: WebhookId, now: Date) => Promise<void>
  /** Locks a webhook, deleted or not, and deletes its ledger, in one transaction. Undefined for an unknown one. */
  deleteLedger: (db: Database, webhook: string) => Promise<WebhookRecord | undefined>
}

/** The encryption context of a webhook's secret: a ciphertext of one row does not decrypt on another. */
export function secretContextOf(id: string): string {
  return `webhook:${id}`
}

/** The existing webhook with this id, or a 404. A change locks it, so that changes are serialized. */
export async function loadWebhook(
  db: Database,
  id: string,
  options: { withDeleted?: boolean; lock?: boolean } = {},
): Promise<WebhookRecord> {
  return orNotFound(await findWebhook(db, id, options), 'webhook')
}

/** Resolves the host of a changed URL. Throws 404, and a 422 on `url`. */
export async function prepareChange(
  deps: WebhookDeps,
  db: Database,
  { id, url }: { id: string; url?: string | undefined },
): Promise<void> {
  if (url === undefined) return
  const webhook = await loadWebhook(db, id)
  if (url !== webhook.url && webhook.mode === 'push') await checkNewUrl(deps, url)
}

/** The account of a webhook: null when it is global. Throws a 422 for a missing one. */
function checkScope(scope: { isGlobal: boolean; account: string | null }): string | null {
  if (scope.isGlobal) return null
  if (scope.account !== null) return scope.account
  throw invalidField('account', 'required', 'is required when is_global is false; give the id of an existing account')
}

export interface CreateWebhookInput extends WebhookTarget {
  name: string | null
  description: string | null
  isGlobal: boolean
  account: string | null
  /** The only resources whose events it receives; null for all. */
  resourceIds: readonly string[] | null
  /** The subscriber's own headers, as `readHeaders` returns them. */
  headers: OwnHeaders
  /** Members of the account who get mails. */
  contacts: readonly string[]
  hasAsymmetricSignature: boolean
  /** A secret that another system has made, checked; null for a new one. */
  importedSecret: string | null
  /** Most attempts that start in a second; null for no limit. */
  maxPerSecond: number | null
  /** Ids and names of event types that it subscribes to, beside `webhook.test`. */
  events: readonly string[]
  caller: Pick<Caller, 'userId'> | null
  now: Date
}

/** Creates a webhook whose URL was checked; its secret is in this answer only. Throws a 422. */
export async function createWebhook(
  deps: WebhookDeps,
  db: Database,
  input: CreateWebhookInput,
): Promise<{ webhook: WebhookRecord; secret: string; warnings: SubscriptionWarning[]; subscribed: number }> {
  const id = deps.ids.next<'webhook'>()
  const { ids, names } = splitEntries(input.events)
  const { name, description, isGlobal, resourceIds, maxPerSecond, now } = input
  const secret = input.importedSecret ?? createSecret(deps.random)
  const { publicKey, signingKeyEncrypted } = buildKeyColumns(deps, id, input.hasAsymmetricSignature)
  const inserted = await insertWebhook(db, {
    id,
    ...pickTarget(input),
    ...{ name, description, isGlobal, resourceIds, maxPerSecond, now },
    account: checkScope(input),
    contacts: input.contacts,
    ...sealHeaders(deps.keyring, id, input.headers),
    publicKey,
    signingKeyEncrypted,
    secretEncrypted: deps.keyring.seal(secret, secretContextOf(id)),
    subscriptions: {
      ids,
      names: [TEST_EVENT, ...names],
      // An id for each possible link.
      links: Array.from({ length: ids.length + names.length + 1 }, () => deps.ids.next<'subscription'>()),
    },
    by: input.caller?.userId ?? null,
  })
  if (!inserted)
    throw invalidField('account', 'unknown_account', 'There is no account with this id, or it was deleted.')
  const { webhook, types } = inserted
  await checkContacts(deps.homeDb ?? db, input.contacts, webhook.account)
  const known = types.map((type) => ({ ...type, isSubscribed: type.internal === TEST_EVENT }))
  if (!known.some((type) => type.isSubscribed)) throw buildUnsynced()
  resolveEntries(input.events, known)
  // In addition to `webhook.test`.
  return { webhook, secret, warnings: findWarnings(webhook, types), subscribed: types.length - 1 }
}

export interface ChangeWebhookInput {
  url?: string
  name?: string | null
  description?: string | null
  isGlobal?: boolean
  account?: string | null
  resourceIds?: string[] | null
  /** As `readHeaders` returns them. They replace those before. */
  headers?: OwnHeaders
  contacts?: string[]
  hasAsymmetricSignature?: boolean
  maxPerSecond?: number | null
  caller: Caller
  now: Date
}

/**
 * Changes a webhook after `prepareChange`. The rules of a URL and of an account apply to the resulting row, not only to
 * the changed columns. The account is locked before the webhook, as in the deletion of an account. Returns `isChanged`
 * false for an equal row, and whether the account changed. Throws 404, and a 422 on `url` or `account`.
 */
export async function changeWebhook(
  deps: Pick<WebhookDeps, 'callbackRules' | 'checkAccountExists' | 'homeDb' | 'keyring' | 'random'>,
  db: Database,
  id: string,
  input: ChangeWebhookInput,
): Promise<RowChange<WebhookRecord> & { isMoved: boolean }> {
  const { webhook, kept } = orNotFound(await lockWebhookForChange(db, id, input), 'webhook')
  checkKeptTarget(deps, webhook, input)
  checkHeadersStay(webhook, input)
  const isGlobal = input.isGlobal ?? webhook.isGlobal
  const wanted = checkScope({ isGlobal, account: input.account === undefined ? webhook.account : input.account })
  // If the webhook changed in between, its account is not the locked one: lock it now.
  const account =
    wanted === null || wanted === kept ? (wanted as AccountId | null) : await deps.checkAccountExists(db, wanted)
  const contacts = await findContacts(deps.homeDb ?? db, webhook, { given: input.contacts, account })
  const change = {
    ...findChange(webhook, { ...input, isGlobal, account, contacts }),
    ...findHeaderChange(deps, webhook, input.headers),
    ...findKeyChange(deps, webhook, input.hasAsymmetricSignature),
  }
  if (Object.keys(change).length === 0) return { row: webhook, before: webhook, isChanged: false, isMoved: false }
  const changed = await changeLockedWebhook(db, webhook, { ...change, by: input.caller.userId }, input.now)
  return { row: changed, before: webhook, isChanged: true, isMoved: change.account !== undefined }
}

function findChange(
  current: WebhookRecord,
  wanted: Pick<ChangeWebhookInput, 'url' | 'name' | 'description' | 'resourceIds' | 'maxPerSecond'> & {
    isGlobal: boolean
    account: AccountId | null
    contacts: string[]
  },
): WebhookChange {
  const { url = current.url, name = current.name, description = current.description, isGlobal, account } = wanted
  const { resourceIds = current.resourceIds, maxPerSecond = current.maxPerSecond, contacts } = wanted
  return {
    ...(url !== current.url && { url }),
    ...(name !== current.name && { name }),
    ...(description !== current.description && { description }),
    ...(isGlobal !== current.isGlobal && { isGlobal }),
    ...(account !== current.account && { account }),
    ...(!isDeepStrictEqual(resourceIds, current.resourceIds) && { resourceIds }),
    ...(maxPerSecond !== current.maxPerSecond && { maxPerSecond }),
    ...(!isDeepStrictEqual(contacts, current.contacts) && { contacts }),
  }
}

/**
 * Activates a webhook, which clears its failures, or deactivates it (docs/contract/delivery.md#statuses). `isChanged` is
 * false for an equal state. Throws 404, and 409 where its account is deleted.
 */
export async function setWebhookActive(
  db: Database,
  id: string,
  input: { isActived: boolean; caller: Caller; now: Date },
): Promise<RowChange<WebhookRecord>> {
  const { isActived, caller, now } = input
  const change = { by: caller.userId, now }
  const changed = await (isActived
    ? activateIfDifferent(db, { id, ...change })
    : deactivateIfActive(db, { id, ...change }))
  if (changed) return { row: changed }
  const webhook = await loadWebhook(db, id)
  const isClear = webhook.consecutiveFailures === 0 && webhook.disabledAt === null && webhook.disabledReason === null
  if (!isActived || (webhook.isActived && isClear)) return { row: webhook, isChanged: false }
  const text = 'The account of this webhook was deleted. Give the webhook another account, or make it global, first.'
  throw new Problem('conflict', text)
}

/** Makes the webhooks of a deleted account inactive, in the transaction that deletes it. */
export function deactivateWebhooksOf(
  db: Database,
  account: AccountId,
  change: { by: UserId; now: Date },
): Promise<void> {
  return deactivateAccountWebhooks(db, account, { ...change, reason: ACCOUNT_DELETED_REASON })
}

/** Replaces the secret; the old one is invalid at once (docs/contract/delivery.md#statuses). Throws 404. */
export async function rotateSecret(
  deps: Pick<WebhookDeps, 'random' | 'keyring'>,
  db: Database,
  id: string,
  input: { caller: Caller; now: Date },
): Promise<{ webhook: WebhookRecord; secret: string }> {
  const secret = createSecret(deps.random)
  const secretEncrypted = deps.keyring.seal(secret, secretContextOf(id))
  const webhook = await rotateSecretOf(db, { id, secretEncrypted, by: input.caller.userId, now: input.now })
  return { webhook: orNotFound(webhook, 'webhook'), secret }
}

/** Soft-deletes: the ledger stays, waiting rows are cancelled (docs/contract/delivery.md#holding). Throws 404. */
export async function deleteWebhook(
  deps: Pick<WebhookDeps, 'cancelWaitingDispatches'>,
  db: Database,
  id: string,
  input: { caller: Caller; now: Date },
): Promise<WebhookRecord> {
  const { caller, now } = input
  const deleted = orNotFound(await softDeleteWebhook(db, { id, by: caller.userId, now }), 'webhook')
  await deps.cancelWaitingDispatches(db, deleted.id, now)
  return deleted
}

/** Permanently deletes a webhook and its ledger, soft-deleted or not. Throws 404. */
export async function purgeWebhook(
  deps: Pick<WebhookDeps, 'deleteLedger'>,
  db: Database,
  id: string,
): Promise<WebhookRecord> {
  const webhook = orNotFound(await deps.deleteLedger(db, id), 'webhook')
  await deleteWebhookForGood(db, webhook.id)
  return webhook
}

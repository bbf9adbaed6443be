import type { AccountId, UserId, WebhookId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { closingStatement, rowStatement } from '../../postgres/statement/statement.ts'
import { type WebhookRecord, webhook } from './webhook.store.ts'

/** Actor and time of a change of a webhook. */
interface By {
  by: UserId
  now: Date
}

const CHANGED = 'updated_by = $by, updated_at = $now'
const LIVING = 'w.document_id = $id and w.deleted_at is null'

/** Makes an active webhook inactive. Undefined for an unknown or inactive one. */
export const deactivateIfActive = rowStatement<WebhookRecord, By & { id: string }>(
  `update webhook w set is_actived = false, ${CHANGED} where ${LIVING} and is_actived returning ${webhook.members('w')}`,
)

/**
 * Makes a webhook active and clears its failures. Undefined for an unknown webhook, an unchanged state, or a deleted
 * account. The account is read behind the lock on the webhook: the deletion of an account waits for this lock and then
 * makes the webhook inactive.
 */
export const activateIfDifferent = rowStatement<WebhookRecord, By & { id: string }>(`
  with locked as (select document_id, account from webhook w where ${LIVING} for update),
    ended as (delete from webhook_mail_notice where webhook = (select document_id from locked))
  update webhook w set is_actived = true, consecutive_failures = 0, disabled_at = null, disabled_reason = null, ${CHANGED}
  from locked l where w.document_id = l.document_id
    and (is_actived = false or consecutive_failures > 0 or disabled_at is not null or disabled_reason is not null)
    and (l.account is null or is_living_account(l.account))
  returning ${webhook.members('w')}`)

/** Replaces the secret of a webhook. Undefined for an unknown or deleted one. */
export const rotateSecretOf = rowStatement<WebhookRecord, By & { id: string; secretEncrypted: string }>(
  `update webhook w set secret_encrypted = $secretEncrypted, ${CHANGED} where ${LIVING} returning ${webhook.members('w')}`,
)

/** Soft-deletes an existing webhook; undefined for none. Maintenance cancels rows routed to it meanwhile. */
export const softDeleteWebhook = rowStatement<WebhookRecord, By & { id: string }>(
  `update webhook w set deleted_at = $now, ${CHANGED} where ${LIVING} returning ${webhook.members('w')}`,
)

const deactivateAll = closingStatement<By & { account: AccountId; reason: string }>(`
  deactivated as (
    update webhook w set is_actived = false, disabled_at = $now, disabled_reason = $reason, ${CHANGED}
    where document_id = any(array(
      select document_id from webhook where account = $account and deleted_at is null
      order by document_id for no key update)))`)

/**
 * Makes the existing webhooks of an account inactive for `reason`, in any state, with the last statement of the
 * transaction, behind the lock on the account that new webhooks wait for. Locks them in the order of their ids, like
 * every lock on several. Inactive ones are locked too, or a concurrent activation would be missed.
 */
export async function deactivateAccountWebhooks(
  db: Database,
  account: AccountId,
  { reason, by, now }: By & { reason: string },
): Promise<void> {
  await deactivateAll(db, { account, by, now, reason }, { invalidations: 'r' })
}

const remove = closingStatement<{ id: WebhookId }>(`
  unqueued as (delete from webhook_queue where webhook = $id),
  removed_webhook as (delete from webhook where document_id = $id)`)

/** Deletes a webhook with its subscriptions, with the last statement of the transaction. */
export async function deleteWebhookForGood(db: Database, id: WebhookId): Promise<void> {
  await remove(db, { id }, { invalidations: 'r' })
}

import { type AccountId, type DispatchId, NIL_ID, type WebhookId } from '../../base/id.ts'

/** Subject of a mail about a webhook (docs/contract/delivery.md#mails). */
export const MAIL_KINDS = ['failing', 'disabled', 'recovered'] as const
export type MailKind = (typeof MAIL_KINDS)[number]

/** In the place of an account: the global webhooks, which are in home and have one turn. */
export const GLOBAL_WEBHOOKS = NIL_ID as AccountId

/** A change of a webhook for a mail, with the delivery that caused it. */
export interface MailNotice {
  webhook: WebhookId
  kind: MailKind
  /** Its account; `GLOBAL_WEBHOOKS` for a global webhook. */
  account: AccountId
  dispatch: DispatchId
  /** Failure class of its last attempt; null after a success. */
  lastError: string | null
  /** Null without an answer. */
  lastStatusCode: number | null
}

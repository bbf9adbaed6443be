import type { AccountId, DispatchId, WebhookId } from '../../base/id.ts'

/** Subject of a mail about a webhook (docs/contract/delivery.md#mails). */
export const MAIL_KINDS = ['failing', 'disabled', 'recovered'] as const
export type MailKind = (typeof MAIL_KINDS)[number]

/** A change of a webhook for a mail, with the delivery that caused it. */
export interface MailNotice {
  webhook: WebhookId
  kind: MailKind
  account: AccountId
  dispatch: DispatchId
  /** Failure class of its last attempt; null after a success. */
  lastError: string | null
  /** Null without an answer. */
  lastStatusCode: number | null
}

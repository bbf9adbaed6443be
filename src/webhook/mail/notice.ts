import type { AccountId, DispatchId, WebhookId } from '../../base/id.ts'

/** What a mail tells of a webhook (docs/contract/delivery.md#mails). */
export const MAIL_KINDS = ['failing', 'disabled', 'recovered'] as const
export type MailKind = (typeof MAIL_KINDS)[number]

/** A change of a webhook that a mail is to tell, with the delivery that caused it. */
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

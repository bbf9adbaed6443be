import type { Id } from '../id.ts'

export type MailId = Id<'mail'>

/** What a mail says, as plain text. */
export interface MailContent {
  subject: string
  text: string
}

/** A mail that is to be sent. Its id stays the same over all attempts. */
export interface Mail extends MailContent {
  id: MailId
  to: string
}

/** Sends mails. Each is handed over once for each attempt. */
export interface MailTransport {
  /** Resolves when the mail was taken over. Throws a `MailError`. */
  send(mail: Mail, now: Date): Promise<void>
  close(): void
}

/** A mail that was not taken over. The message holds no address and no content. */
export class MailError extends Error {
  /** Whether another attempt is of no use. */
  readonly isPermanent: boolean

  constructor(message: string, options: { isPermanent: boolean; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.name = 'MailError'
    this.isPermanent = options.isPermanent
  }
}

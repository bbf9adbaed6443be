import type { Id } from '../../base/id.ts'
import type { OwnFault } from '../../outbound/own-fault/own-fault.ts'

export type MailId = Id<'mail'>

/** The parts of a mail with one link, in the order in which they are read. */
export interface MailParts {
  /** BCP 47. */
  lang: string
  /** `BRAND_NAME`. */
  service: string
  before: readonly string[]
  link: string
  /** Label of the link, for a button. */
  button: string
  after: readonly string[]
}

/** An image that a mail carries. */
export interface MailImage {
  /** Its `Content-ID`, without brackets: the HTML refers to it as `cid:<id>`. */
  id: string
  type: string
  body: Buffer
}

/** Text of a mail. */
export interface MailContent {
  subject: string
  text: string
  /** Beside the text, once it is rendered by a template. */
  html?: string
  images?: readonly MailImage[]
  /** Values of a template. */
  parts?: MailParts
  /** URL whose POST stops mails like this one (RFC 8058). */
  unsubscribe?: string
}

/** A mail to send. Its id stays the same over all attempts. */
export interface Mail extends MailContent {
  id: MailId
  to: string
}

/** Sends mails, once for each attempt. */
export interface MailTransport {
  /** Resolves when the mail was accepted. Throws a `MailError`. */
  send(mail: Mail, now: Date): Promise<void>
  close(): void
}

/** A refused mail. The message contains no address and no content. */
export class MailError extends Error {
  /** Whether another attempt is pointless. */
  readonly isPermanent: boolean
  /** The server was not contacted for a fault of this process: the attempt does not count. */
  readonly ownFault: OwnFault | undefined

  constructor(message: string, options: { isPermanent: boolean; ownFault?: OwnFault | undefined; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.name = 'MailError'
    this.isPermanent = options.isPermanent
    this.ownFault = options.ownFault
  }
}

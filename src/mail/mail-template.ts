import type { Texts } from '../language/texts.ts'
import type { MailContent } from './mail.ts'

/** What a mail with one link says, in the order in which it is read. */
export interface MailParts {
  texts: Texts
  /** `BRAND_NAME`. */
  service: string
  subject: string
  /** Paragraphs before the link. */
  before: readonly string[]
  link: string
  /** What the link does, for a button. */
  button: string
  /** Paragraphs after the link. */
  after: readonly string[]
}

/** Composes a mail. Pure. */
export function composeMail({ subject, before, link, after }: MailParts): MailContent {
  return { subject, text: `${[...before, link, ...after].join('\n\n')}\n` }
}

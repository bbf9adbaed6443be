import type { Texts } from '../../../base/language/texts.ts'
import type { MailContent } from '../../mail/mail.ts'
import { composeMail } from '../../mail/mail-template.ts'

/** The mail of a sign-in: its code, and the link where a page asked. A client of the API gets plain text. Pure. */
export function buildMailLoginMail(facts: {
  texts: Texts
  code: string
  link: string | undefined
  /** `BRAND_NAME`, which users know the service by. */
  serviceName: string
}): MailContent {
  const { texts, code, link, serviceName: service } = facts
  const subject = texts.say('mail.sign-in.subject', { service })
  const start = texts.say('mail.sign-in.text', { service })
  const say = texts.say('mail.sign-in.code', { code })
  const after = [texts.say('mail.sign-in.secret'), texts.say('mail.ignore')]
  if (link === undefined) return { subject, text: `${[start, say, ...after].join('\n\n')}\n` }
  return composeMail({
    texts,
    service,
    subject,
    before: [start, say, texts.say('mail.sign-in.use')],
    link,
    button: texts.say('mail.sign-in.button'),
    after,
  })
}

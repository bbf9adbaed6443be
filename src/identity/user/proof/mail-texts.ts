import type { Texts } from '../../../base/language/texts.ts'
import type { MailContent } from '../../mail/mail.ts'
import { composeMail } from '../../mail/mail-template.ts'

/** Text of a mail of the service. */
interface MailFacts {
  texts: Texts
  link: string
  /** `BRAND_NAME`, which users know the service by. */
  serviceName: string
}

/** The mail with the link to a new password. Pure. */
export function buildResetMail({ texts, link, serviceName: service }: MailFacts): MailContent {
  return composeMail({
    texts,
    service,
    subject: texts.say('mail.reset.subject', { service }),
    before: [texts.say('mail.reset.text', { service }), texts.say('mail.reset.use')],
    link,
    button: texts.say('mail.reset.button'),
    after: [texts.say('mail.reset.effect'), texts.say('mail.ignore')],
  })
}

/** The mail with the link that verifies an address. Pure. */
export function buildVerificationMail({ texts, link, serviceName: service }: MailFacts): MailContent {
  return composeMail({
    texts,
    service,
    subject: texts.say('mail.verification.subject', { service }),
    before: [texts.say('mail.verification.text', { service }), texts.say('mail.verification.use')],
    link,
    button: texts.say('mail.verification.button'),
    after: [texts.say('mail.ignore')],
  })
}

import type { Texts } from '../../base/language/texts.ts'
import type { MailContent } from '../mail/mail.ts'
import { composeMail } from '../mail/mail-template.ts'

/** Facts of a mail about a sign-up. */
interface SignUpMailFacts {
  texts: Texts
  link: string
  /** `BRAND_NAME`, which users know the service by. */
  serviceName: string
}

/** The mail with the link that confirms the address of a sign-up. Pure. */
export function buildSignUpMail({ texts, link, serviceName: service }: SignUpMailFacts): MailContent {
  return composeMail({
    texts,
    service,
    subject: texts.say('mail.sign-up.subject', { service }),
    before: [texts.say('mail.sign-up.text', { service }), texts.say('mail.sign-up.use')],
    link,
    button: texts.say('mail.sign-up.button'),
    after: [texts.say('mail.ignore')],
  })
}

/** The mail to a user whose address was used for a sign-up: it leads to the sign-in. Pure. */
export function buildKnownMail({ texts, link, serviceName: service }: SignUpMailFacts): MailContent {
  return composeMail({
    texts,
    service,
    subject: texts.say('mail.known.subject', { service }),
    before: [texts.say('mail.known.text', { service }), texts.say('mail.known.use')],
    link,
    button: texts.say('mail.known.button'),
    after: [texts.say('mail.ignore')],
  })
}

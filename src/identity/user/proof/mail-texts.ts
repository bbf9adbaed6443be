import type { Texts } from '../../../base/language/texts.ts'
import type { MailContent } from '../../mail/mail.ts'
import { composeMail } from '../../mail/mail-template.ts'
import { quoteName } from '../../mail/quoted-name.ts'

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

/** The mail with the link by which the owner of a new address agrees to its use. Pure. */
export function buildNewAddressMail({ texts, link, serviceName: service }: MailFacts): MailContent {
  return composeMail({
    texts,
    service,
    subject: texts.say('mail.new-address.subject', { service }),
    before: [texts.say('mail.new-address.text', { service }), texts.say('mail.new-address.use')],
    link,
    button: texts.say('mail.verification.button'),
    after: [texts.say('mail.ignore')],
  })
}

/** The mail to the present address, with the link that agrees to its replacement. Pure. */
export function buildOldAddressMail({
  texts,
  link,
  serviceName: service,
  newEmail,
}: MailFacts & { newEmail: string }): MailContent {
  return composeMail({
    texts,
    service,
    subject: texts.say('mail.old-address.subject', { service }),
    before: [
      texts.say('mail.old-address.text', { service, email: quoteName(newEmail) }),
      texts.say('mail.old-address.use'),
    ],
    link,
    button: texts.say('mail.old-address.button'),
    after: [texts.say('mail.old-address.stranger')],
  })
}

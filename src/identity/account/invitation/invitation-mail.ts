import type { Texts } from '../../../base/language/texts.ts'
import type { MailContent } from '../../mail/mail.ts'
import { composeMail } from '../../mail/mail-template.ts'
import { quoteName } from '../../mail/quoted-name.ts'

/** The mail with the link of an invitation. Pure. */
export function buildInvitationMail(facts: {
  texts: Texts
  accountName: string
  link: string
  /** `BRAND_NAME`, which users know the service by. */
  serviceName: string
}): MailContent {
  const { texts, link, serviceName: service } = facts
  // The inviter chose the name, and the recipient may not know the inviter.
  const account = quoteName(facts.accountName)
  return composeMail({
    texts,
    service,
    subject: texts.say('mail.invitation.subject', { account, service }),
    before: [texts.say('mail.invitation.text', { account, service }), texts.say('mail.invitation.use')],
    link,
    button: texts.say('mail.invitation.button'),
    after: [texts.say('mail.invitation.ignore')],
  })
}

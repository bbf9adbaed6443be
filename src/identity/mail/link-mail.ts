import type { Texts } from '../../base/language/texts.ts'
import type { MailContent } from './mail.ts'
import { composeMail } from './mail-template.ts'
import { quoteName } from './quoted-name.ts'

/**
 * Mails with one link, by the name in the keys of their texts (`mail.<name>.subject`, `.text`, `.use`, `.button`), with the
 * texts below the link:
 * - `reset`: to a new password
 * - `verification`: that the address is the user's
 * - `new-address`, `old-address`: that a new address is used, and that it replaces the present one
 * - `sign-up`: the confirmation of a sign-up
 * - `known`: to the sign-in, for an address that was used for a sign-up and has a user
 * - `invitation`: into an account
 */
const CLOSINGS = {
  reset: ['mail.reset.effect', 'mail.ignore'],
  verification: ['mail.ignore'],
  'new-address': ['mail.ignore'],
  'old-address': ['mail.old-address.stranger'],
  'sign-up': ['mail.ignore'],
  known: ['mail.ignore'],
  invitation: ['mail.invitation.ignore'],
} as const

/** Facts of a mail with one link. */
export interface LinkMailFacts {
  texts: Texts
  link: string
  /** `BRAND_NAME`, which users know the service by. */
  serviceName: string
  /** Texts chosen by another user: `account` of an invitation, the new `email`. */
  named?: Readonly<Record<string, string>>
}

/** The mail `name`. Texts chosen by others are quoted. Pure. */
export function buildLinkMail(name: keyof typeof CLOSINGS, facts: LinkMailFacts): MailContent {
  const { texts, link, serviceName: service, named = {} } = facts
  const quoted = Object.fromEntries(Object.entries(named).map(([key, value]) => [key, quoteName(value)]))
  const values = { ...quoted, service }
  return composeMail({
    texts,
    service,
    subject: texts.say(`mail.${name}.subject`, values),
    before: [texts.say(`mail.${name}.text`, values), texts.say(`mail.${name}.use`)],
    link,
    button: texts.say(`mail.${name}.button`),
    after: CLOSINGS[name].map((key) => texts.say(key)),
  })
}

import type { MailContent } from '../mail/mail.ts'

const IGNORE = 'If you did not ask for this, ignore this mail: nothing changes.'

/** What a mail of the service says. */
interface MailFacts {
  link: string
  /** `BRAND_NAME`, which people know the service by. */
  serviceName: string
}

/** The mail with the link to a new password. Pure. */
export function buildResetMail({ link, serviceName }: MailFacts): MailContent {
  const text = `Somebody asked for a new password for this e-mail address at ${serviceName}.

To set a new password, open this link within one hour. It works once:

${link}

A new password signs you out everywhere and revokes your API keys.

${IGNORE}
`
  return { subject: `Set a new password at ${serviceName}`, text }
}

/** The mail with the link that verifies an address. Pure. */
export function buildVerificationMail({ link, serviceName }: MailFacts): MailContent {
  const text = `You have this e-mail address at ${serviceName}. To confirm that it is yours, open this link within 24 hours. It works once:

${link}

${IGNORE}
`
  return { subject: `Confirm your e-mail address at ${serviceName}`, text }
}

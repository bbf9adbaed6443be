import type { MailContent } from '../mail/mail.ts'

const IGNORE = 'If you did not ask for this, ignore this mail: nothing changes.'

/** The mail with the link to a new password. Pure. */
export function buildResetMail(link: string): MailContent {
  const text = `Somebody asked for a new password for this e-mail address at Signalbox.

To set a new password, open this link within one hour. It works once:

${link}

A new password signs you out everywhere and revokes your API keys.

${IGNORE}
`
  return { subject: 'Set a new password', text }
}

/** The mail with the link that verifies an address. Pure. */
export function buildVerificationMail(link: string): MailContent {
  const text = `To confirm that this e-mail address is yours, open this link within 24 hours. It works once:

${link}

${IGNORE}
`
  return { subject: 'Confirm your e-mail address', text }
}

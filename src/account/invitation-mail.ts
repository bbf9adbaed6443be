import type { MailContent } from '../mail/mail.ts'

/** The mail with the link of an invitation. Pure. */
export function buildInvitationMail({ accountName, link }: { accountName: string; link: string }): MailContent {
  const text = `You are invited to the account "${accountName}" at Signalbox.

To accept, open this link within 7 days. It works once:

${link}

If you do not know who invites you, ignore this mail: nothing changes.
`
  return { subject: `Invitation to the account "${accountName}"`, text }
}

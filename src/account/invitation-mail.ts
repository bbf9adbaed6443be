import type { MailContent } from '../mail/mail.ts'
import { quoteName } from '../mail/quoted-name.ts'

/** The mail with the link of an invitation. Pure. */
export function buildInvitationMail({
  accountName,
  link,
  serviceName,
}: {
  accountName: string
  link: string
  /** `BRAND_NAME`, which people know the service by. */
  serviceName: string
}): MailContent {
  // Whoever may invite chose the name, and the person need not know them.
  const account = quoteName(accountName)
  const text = `You are invited to the account ${account} at ${serviceName}.

To accept, open this link within 7 days. It works once:

${link}

If you do not know who invites you, ignore this mail: nothing changes.
`
  return { subject: `Invitation to the account ${account} at ${serviceName}`, text }
}

/**
 * Limits of mails of a kind to one address, in an hour and in 24 hours, over all senders
 * (docs/contract/sessions.md#mails-to-one-address). Each kind has its own: invitations of strangers leave room for the
 * links that the owner asks for.
 */
const MAIL_LIMITS = {
  invitation: { hourly: 10, daily: 20 },
  'email-change': { hourly: 5, daily: 10 },
  reset: { hourly: 6, daily: 20 },
  verification: { hourly: 6, daily: 20 },
  'sign-up': { hourly: 6, daily: 12 },
  'sign-in': { hourly: 12, daily: 60 },
  webhook: { hourly: 12, daily: 48 },
} as const
type LimitedKind = keyof typeof MAIL_LIMITS

/** SQL for the mails of a kind that an address may still get, behind its lock, by the database's clock. */
export const mailRoomOf = (kind: LimitedKind, email: string): string =>
  `mail_room(${email}, '${kind}', ${MAIL_LIMITS[kind].hourly}, ${MAIL_LIMITS[kind].daily})`

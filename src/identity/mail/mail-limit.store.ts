import type { UserId } from '../../base/id.ts'
import { countBehindLock } from '../../postgres/statement/counted-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { mailRoomOf } from './mail-room.ts'

/** The mails about webhooks that a user may still get. */
export interface MailRoom {
  user: UserId
  room: number
}

/** The room of each of these users, whose addresses are locked in one order. */
export const listWebhookMailRooms = countBehindLock<MailRoom, { users: readonly UserId[]; emails: readonly string[] }>({
  counts: 'mails about webhooks to an address',
  lock: 'mailRecipients',
  by: 'mail_room',
  call: `
    select x."user", ${mailRoomOf('webhook', 'x.email')} as room
    from (select * from unnest($users::uuid[], $emails::text[]) y ("user", email) order by email_key(y.email) offset 0) x`,
})

const countInvitationRoom = countBehindLock<{ room: number }, { email: string }>({
  counts: 'mails of invitations to an address',
  lock: 'mailRecipients',
  by: 'mail_room',
  call: `select ${mailRoomOf('invitation', '$email')} as room`,
})

/** Mails of invitations that an address may still get, from any account. They are written in the same transaction. */
export async function readInvitationRoom(db: Database, email: string): Promise<number> {
  const [row] = await countInvitationRoom(db, { email })
  return row?.room ?? 0
}

import type { IdMaker, UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { MailContent, MailId } from './mail.ts'
import { listWebhookMailRooms, type MailRoom } from './mail-limit.store.ts'
import { insertMail, insertMails } from './outbox.store.ts'

export { readInvitationRoom } from './mail-limit.store.ts'

/** Dependencies of writing mails. */
export interface MailDeps {
  ids: IdMaker
  keyring: Pick<Keyring, 'seal'>
  /** Whether a transport is configured. */
  canSendMail: boolean
}

/** The encryption context of a mail's content: that of one mail does not decrypt in another. */
export const mailContextOf = (id: MailId) => `mail:${id}`

/** Checks that this service sends mails. Throws 503 `dependency_unavailable`. */
export function checkCanSend({ canSendMail }: MailDeps): void {
  if (canSendMail) return
  throw new Problem('dependency_unavailable', 'This service sends no mail: its operator has set up no mail server.', {
    reason: 'SMTP_URL and MAIL_FROM are not set',
  })
}

/** Writes a mail with the last statement of the transaction. With `isReal` false none is written, at the same cost. */
export async function writeMail(
  deps: MailDeps,
  tx: Database,
  input: { kind: string; to: string; content: MailContent; expiresAt: Date; isReal?: boolean; now: Date },
): Promise<void> {
  const { content, isReal = true, ...rest } = input
  const id = deps.ids.next<'mail'>()
  const sealed = deps.keyring.seal(JSON.stringify(content), mailContextOf(id))
  await insertMail(tx, { ...rest, id, content: sealed, isReal })
}

/** Writes mails into the outbox, in the caller's transaction. Returns their ids, in their order. */
export async function writeMails(
  deps: Pick<MailDeps, 'ids' | 'keyring'>,
  tx: Database,
  mails: readonly { kind: string; to: string; content: MailContent; expiresAt: Date }[],
  now: Date,
): Promise<MailId[]> {
  const rows = mails.map(({ content, ...rest }) => {
    const id = deps.ids.next<'mail'>()
    return { ...rest, id, content: deps.keyring.seal(JSON.stringify(content), mailContextOf(id)) }
  })
  if (rows.length > 0) await insertMails(tx, rows, now)
  return rows.map(({ id }) => id)
}

/** Mails about webhooks that each of these users may still get. They are written in the same transaction. */
export function findWebhookMailRooms(
  tx: Database,
  readers: readonly { user: UserId; email: string }[],
): Promise<MailRoom[]> {
  const [users, emails] = [readers.map(({ user }) => user), readers.map(({ email }) => email)]
  return listWebhookMailRooms(tx, { users, emails })
}

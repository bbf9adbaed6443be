import type { Database } from '../../postgres/statement/database.ts'
import { keepMail } from './kept-mail.store.ts'
import type { MailTransport } from './mail.ts'

export { listKeptMails } from './kept-mail.store.ts'

/** Builds the transport of development without a mail server: keeps mails in the database, to be read at `/auth/mail`. */
export function buildKeepingTransport(db: Database): MailTransport {
  return { send: (mail, now) => keepMail(db, mail, now), close: () => {} }
}

import type { Database } from '../../postgres/statement/database.ts'
import { type KeptMail, keepMail, listKeptMails } from './kept-mail.store.ts'
import type { MailTransport } from './mail.ts'

/** Builds the transport of development without a mail server: keeps mails in the database, to be read at `/auth/mail`. */
export function buildKeepingTransport(db: Database): MailTransport {
  return { send: (mail, now) => keepMail(db, mail, now), close: () => {} }
}

/** The stored mails, the newest first. */
export function readKeptMails(db: Database): Promise<KeptMail[]> {
  return listKeptMails(db)
}

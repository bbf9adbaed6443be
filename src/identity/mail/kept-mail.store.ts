import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import type { Mail } from './mail.ts'

/** Maximum number of mails that development keeps; older ones are deleted. */
const KEPT_LIMIT = 100

/** A mail that was stored in place of being sent. */
export interface KeptMail extends Mail {
  createdAt: Date
}

const insert = statement<never, Pick<Mail, 'id' | 'to' | 'subject' | 'text'> & { now: Date; others: number }>(`
  with kept as (
    insert into kept_mail (document_id, recipient, subject, text, created_at) values ($id, $to, $subject, $text, $now)
    on conflict (document_id) do nothing
  )
  delete from kept_mail where document_id = any(array(
    select document_id from kept_mail order by created_at desc, document_id desc offset $others))`)

/** Stores a mail, and deletes all but the newest ones. A stored mail is not changed. */
export async function keepMail(db: Database, mail: Mail, now: Date): Promise<void> {
  await insert(db, { ...mail, now, others: KEPT_LIMIT - 1 })
}

/** The stored mails, the newest first. */
export const listKeptMails = statement<KeptMail>(`
  select document_id as id, recipient as "to", subject, text, created_at as "createdAt" from kept_mail order by created_at desc, document_id desc`)

import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listArrays, listNames, transpose } from '../../postgres/statement/fragment.ts'
import { closingStatement, statement } from '../../postgres/statement/statement.ts'
import type { MailId } from './mail.ts'

/** A mail of the outbox, with its content encrypted. */
export interface OutboxRow {
  id: MailId
  kind: string
  to: string
  content: string
  expiresAt: Date
}

/** Inserts a mail that is due, with the last statement. With `isReal` false it inserts nothing, in the same time. */
export const insertMail = closingStatement<OutboxRow & { isReal: boolean; now: Date }>(`
  queued_mail as (
    insert into mail_outbox (document_id, kind, recipient, content, due_at, expires_at, created_at)
    select $id::uuid, $kind::text, $to::text, $content::text, $now::timestamptz, $expiresAt::timestamptz,
      $now::timestamptz
    where $isReal::boolean)`)

const OUTBOX_COLUMNS = [
  ['document_id', 'uuid'],
  ['kind', 'text'],
  ['recipient', 'text'],
  ['content', 'text'],
  ['expires_at', 'timestamptz'],
] as const

const insertAll = statement<never, { now: Date }>(`
  insert into mail_outbox (${listNames(OUTBOX_COLUMNS)}, due_at, created_at)
  select x.*, $now, $now from unnest(${listArrays(OUTBOX_COLUMNS)}) as x`)

/** Inserts mails that are due at once. */
export async function insertMails(db: Database, rows: readonly OutboxRow[], now: Date): Promise<void> {
  const values = rows.map(({ id, kind, to, content, expiresAt }) => [id, kind, to, content, expiresAt])
  await insertAll(db, { ...transpose(OUTBOX_COLUMNS, values), now })
}

/** A claimed mail. `attempts` counts this one and is its fence. */
export interface ClaimedMail extends OutboxRow {
  attempts: number
}

/** Claims mails that are due, until `leaseEnd`: after it another process may try them again. */
export const claimMails = statement<ClaimedMail, { now: Date; leaseEnd: Date; limit: number }>(`
  update mail_outbox set attempts = attempts + 1, due_at = $leaseEnd
  where document_id = any(array(
    select document_id from mail_outbox where status = 'waiting' and due_at <= $now
    order by due_at limit $limit for update skip locked))
  returning document_id as id, kind, recipient as "to", content, expires_at as "expiresAt", attempts`)

/** Ends a claimed mail and erases its content. Does nothing when another process has claimed it since. */
export const endMail = statement<
  never,
  { id: MailId; attempts: number; status: 'sent' | 'failed'; error: string | null; now: Date }
>(`
  update mail_outbox set status = $status, content = null, last_error = $error, ended_at = $now
  where document_id = $id and attempts = $attempts and status = 'waiting'`)

/** Makes a claimed mail due again. Does nothing when another process claimed it since. */
export const postponeMail = statement<never, { id: MailId; attempts: number; dueAt: Date; error: string }>(`
  update mail_outbox set due_at = $dueAt, last_error = $error
  where document_id = $id and attempts = $attempts and status = 'waiting'`)

/** Makes a claimed mail due again, of which no attempt was made. Does nothing when another process claimed it since. */
export const giveBackMail = statement<never, { id: MailId; attempts: number; dueAt: Date }>(`
  update mail_outbox set due_at = $dueAt, attempts = attempts - 1
  where document_id = $id and attempts = $attempts and status = 'waiting'`)

/** Deletes up to `limit` mails that ended before `before`. Returns their number. For maintenance. */
export const deleteEndedMails = deletionOfOld('mail_outbox', { key: 'document_id', time: 'ended_at' })

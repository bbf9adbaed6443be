import type { AccountId } from '../../base/id.ts'
import type { OwnAccount } from '../../http/listing/page.ts'
import type { Database } from '../../postgres/statement/database.ts'

const COLUMNS = [
  'document_id',
  'account',
  'event',
  'contract',
  'status',
  'attempts',
  'last_status_code',
  'last_error',
  'last_duration_ms',
  'last_attempt_at',
  'next_attempt_at',
  'ended_at',
  'created_at',
  'updated_at',
] as const

/** The states of a message (docs/contract/realtime.md). */
export const MESSAGE_STATUSES = ['pending', 'retrying', 'published', 'rejected', 'exhausted'] as const

/** A message of the ledger. */
export interface MessageRecord {
  id: string
  account: AccountId
  event: string
  contract: string | null
  status: (typeof MESSAGE_STATUSES)[number]
  attempts: number
  lastStatusCode: number | null
  lastError: string | null
  lastDurationMs: number | null
  lastAttemptAt: Date | null
  nextAttemptAt: Date | null
  endedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

/** The messages of an account, or of all, as the base of a list. */
export function selectMessages(db: Database, own?: OwnAccount) {
  const all = db.selectFrom('realtime_message').select(COLUMNS)
  return own ? all.where('account', '=', own) : all
}

type MessageColumns = Awaited<ReturnType<ReturnType<typeof selectMessages>['execute']>>[number]

/** Maps a row of the view, whose columns the types take for nullable. */
export function toMessageRecord(row: MessageColumns): MessageRecord {
  return {
    id: row.document_id as string,
    account: row.account as AccountId,
    event: row.event as string,
    contract: row.contract,
    status: row.status as MessageRecord['status'],
    attempts: row.attempts as number,
    lastStatusCode: row.last_status_code,
    lastError: row.last_error,
    lastDurationMs: row.last_duration_ms,
    lastAttemptAt: row.last_attempt_at,
    nextAttemptAt: row.next_attempt_at,
    endedAt: row.ended_at,
    createdAt: row.created_at as Date,
    updatedAt: row.updated_at as Date,
  }
}

import type { AccountId } from '../../base/id.ts'
import type { OwnAccount } from '../../http/listing/page.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'

/** The states of a message (docs/contract/realtime.md). */
export const MESSAGE_STATUSES = ['pending', 'retrying', 'published', 'rejected', 'exhausted'] as const

/** A message of the ledger, a view, whose columns the types take for nullable. */
export const message = defineRecord('realtime_message', [
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
]).typed<{
  id: string
  account: AccountId
  event: string
  status: (typeof MESSAGE_STATUSES)[number]
  attempts: number
  createdAt: Date
  updatedAt: Date
}>()
export type MessageRecord = RecordOf<typeof message>

/** The messages of an account, or of all, as the base of a list. */
export function selectMessages(db: Database, own?: OwnAccount) {
  const all = selectRecord(db.selectFrom('realtime_message'), message)
  return own ? all.where('account', '=', own) : all
}

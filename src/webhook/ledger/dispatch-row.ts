import type { Static } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { DispatchRow } from './dispatch.schema.ts'
import { type DispatchRecord, ledger } from './dispatch.store.ts'

const toStoredRow = wireOf(ledger, DispatchRow)

/** Maps a ledger row for the wire. */
export function toDispatchRow(record: DispatchRecord): Static<typeof DispatchRow> {
  return {
    ...toStoredRow(record),
    is_replay: record.trigger === 'replay',
    waiting_reason: record.isThrottled ? 'throttled' : null,
    next_attempt_at: record.nextAttemptAt?.toISOString() ?? null,
  }
}

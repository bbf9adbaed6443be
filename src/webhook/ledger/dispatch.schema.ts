import { AttemptRow } from '../../delivery/post/attempt.schema.ts'
import { enumSchema, named, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'

/** The states of a ledger row (docs/contract/delivery.md#statuses). */
export const StatusSchema = named(
  'DispatchStatus',
  enumSchema(['pending', 'retrying', 'success', 'exhausted', 'failed', 'cancelled'], {
    description:
      '`pending`: no POST yet. `retrying`: waits for the next one. `success`. `exhausted`: five POSTs done. ' +
      '`failed`: ended at once by a 3xx or a 410. `cancelled`: its webhook was deleted, or nobody pulled it in time.',
  }),
)

/** Reasons for which a due row waits (docs/contract/delivery.md#ledger-row). */
const WAITING_REASONS = ['throttled'] as const

const dispatchMembers = {
  document_id: UuidSchema,
  webhook: UuidSchema,
  event_id: UuidSchema,
  event: Type.String(),
  account: nullable(UuidSchema),
  status: StatusSchema,
  attempts: Type.Integer({ description: 'POSTs over the whole life of the row; never reset.' }),
  next_attempt_at: nullable(TimestampSchema),
  waiting_reason: nullable(
    enumSchema(WAITING_REASONS, {
      description: 'Why a due attempt waits. `throttled`: for `max_per_second` of its webhook.',
    }),
  ),
  last_attempt_at: nullable(TimestampSchema),
  last_status_code: nullable(Type.Integer()),
  last_error: nullable(Type.String({ description: 'The class of the last failure; null after a success.' })),
  last_duration_ms: nullable(Type.Integer()),
  delivered_at: nullable(TimestampSchema),
  is_test: Type.Boolean(),
  is_replay: Type.Boolean({
    description: 'Whether a replay asked for the attempt that is due, or, of an ended row, for the last one.',
  }),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
}

/** A row of the ledger (docs/contract/delivery.md#ledger-row). */
export const DispatchRow = namedObject('Dispatch', dispatchMembers)

/** A row of the ledger with its attempts. */
export const DispatchWithAttempts = namedObject('DispatchWithAttempts', {
  ...dispatchMembers,
  attempts_log: Type.Array(AttemptRow),
})

/** Optional body. */
export const ReplayBody = nullable(
  namedObject('ReplayDispatch', {
    confirm_duplicate: Type.Optional(
      Type.Boolean({ description: 'The event may have arrived already; post it again.' }),
    ),
  }),
)

export const TestAnswer = namedObject('EnqueuedTest', { dispatch_id: UuidSchema, event_id: UuidSchema })

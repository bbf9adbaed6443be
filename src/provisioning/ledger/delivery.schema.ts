import { AttemptRow } from '../../delivery/post/attempt.schema.ts'
import { enumSchema, named, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { PROVISIONING_EVENTS } from '../claim/payload.ts'

/** The states of a delivery (docs/contract/provisioning.md#provisioning-delivery). */
const StatusSchema = named(
  'ProvisioningDeliveryStatus',
  enumSchema(['pending', 'retrying', 'delivered', 'failed', 'dead_letter', 'cancelled'], {
    description:
      '`pending`: no attempt yet. `retrying`: waits for the next one. `delivered`. `failed`: ended at once by a 4xx or a ' +
      '3xx. `dead_letter`: eight attempts done. `cancelled`: its target was deleted first.',
  }),
)

const deliveryMembers = {
  document_id: UuidSchema,
  target: UuidSchema,
  user: UuidSchema,
  event_id: UuidSchema,
  type: named('ProvisioningEvent', enumSchema(PROVISIONING_EVENTS)),
  status: StatusSchema,
  attempts: Type.Integer({ description: 'Attempts over the whole life of the row; never reset.' }),
  next_attempt_at: nullable(TimestampSchema),
  last_attempt_at: nullable(TimestampSchema),
  last_status_code: nullable(Type.Integer()),
  last_error: nullable(Type.String({ description: 'The class of the last failure; null after a success.' })),
  last_duration_ms: nullable(Type.Integer()),
  delivered_at: nullable(TimestampSchema),
  job: nullable(UuidSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
}

/** A row of the ledger. */
export const DeliveryRow = namedObject('ProvisioningDelivery', deliveryMembers)

/** A row with the user's state, and its attempts. */
export const DeliveryWithAttempts = namedObject('ProvisioningDeliveryWithAttempts', {
  ...deliveryMembers,
  data: namedObject('ProvisioningData', {
    user: namedObject('ProvisionedUser', {
      document_id: UuidSchema,
      email: Type.String(),
      name: nullable(Type.String()),
      status: enumSchema(['active', 'disabled', 'deleted']),
    }),
  }),
  attempts_log: Type.Array(AttemptRow),
})

/** Optional body. */
export const ReplayDeliveryBody = nullable(
  namedObject('ReplayProvisioningDelivery', {
    confirm_duplicate: Type.Optional(Type.Boolean({ description: 'It may have arrived already; make it again.' })),
  }),
)

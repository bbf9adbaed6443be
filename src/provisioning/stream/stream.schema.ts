import { namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'

/** A stream in which deliveries wait (docs/contract/provisioning.md#streams). */
export const StreamRow = namedObject('ProvisioningStream', {
  user: UuidSchema,
  position: Type.Integer({ description: 'The number of the last delivery that was queued, from 1.' }),
  waiting: Type.Integer({ description: 'Deliveries that have not ended.' }),
  due_at: TimestampSchema,
  lag_seconds: Type.Integer({
    description: 'How long the first of them has been due; 0 while it waits for a retry.',
  }),
  delivery: nullable({ ...UuidSchema, description: 'The first of them, which the others wait for.' }),
  attempts: Type.Integer({ description: 'Its attempts.' }),
  last_status_code: nullable(Type.Integer()),
  last_error: nullable(Type.String({ description: 'The class of its last failure.' })),
  dead_letters: Type.Integer({ description: 'Dead letters among the last 100 deliveries of the stream.' }),
})

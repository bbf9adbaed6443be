import { enumSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'

const jobMembers = {
  document_id: UuidSchema,
  target: UuidSchema,
  kind: enumSchema(['sync', 'reconcile', 'redrive'], {
    description:
      '`sync`: every user. `reconcile`: those whose state the target has not accepted. `redrive`: those whose latest delivery is `failed` or `dead_letter`.',
  }),
  status: enumSchema(['running', 'paused', 'done', 'cancelled', 'failed'], {
    description: '`failed`: several rounds failed in a row; a resume continues after the last processed row.',
  }),
  total: Type.Integer({ description: 'Users to look at, deleted ones included.' }),
  processed: Type.Integer({ description: 'Users looked at.' }),
  queued: Type.Integer({ description: 'Deliveries queued; of a `redrive`, those that are replayed.' }),
  last_error: nullable(Type.String()),
  created_by: nullable(UuidSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
  ended_at: nullable(TimestampSchema),
}

/** A run through all users for one target. */
export const JobRow = namedObject('ProvisioningJob', jobMembers)

const OUTCOMES = ['waiting', 'delivered', 'failed', 'dead_letter', 'cancelled'] as const

/** A job, and the results of its deliveries. */
export const JobWithOutcomes = namedObject('ProvisioningJobWithOutcomes', {
  ...jobMembers,
  deliveries: namedObject(
    'ProvisioningJobDeliveries',
    {
      waiting: Type.Integer(),
      delivered: Type.Integer(),
      failed: Type.Integer(),
      dead_letter: Type.Integer(),
      cancelled: Type.Integer(),
    },
    { description: 'What became of the deliveries that the ledger still has.' },
  ),
})

/** Maps the results of a job's deliveries. */
export function toOutcomesRow(outcomes: Readonly<Record<string, number>>) {
  return Object.fromEntries(OUTCOMES.map((status) => [status, outcomes[status] ?? 0])) as Record<
    (typeof OUTCOMES)[number],
    number
  >
}

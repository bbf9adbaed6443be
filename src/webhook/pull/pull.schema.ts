import { enumSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'

/** Optional body of a pull (docs/contract/pull.md#pull). */
export const PullBody = nullable(
  namedObject('PullDeliveries', {
    max: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, description: 'Deliveries in the answer at most. Default 10.' }),
    ),
    wait_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 30,
        description: 'How long to wait for a first delivery while none is due. Default 0.',
      }),
    ),
    lease_seconds: Type.Optional(
      Type.Integer({ minimum: 10, maximum: 600, description: 'Time to acknowledge them. Default 60.' }),
    ),
  }),
)

/** A pulled delivery: the POST that a webhook with a URL would have got, and its lease. */
const PulledDelivery = namedObject('PulledDelivery', {
  id: UuidSchema,
  receipt: Type.String({ description: 'Names this attempt of the delivery in an acknowledgement.' }),
  attempt: Type.Integer({ description: 'The number of this attempt, from 1.' }),
  lease_until: TimestampSchema,
  headers: Type.Record(Type.String(), Type.String(), {
    description: 'The headers of a POST, with the signatures; names are in lower case.',
  }),
  body: Type.String({ description: 'The raw body that the signatures are of: verify it before it is parsed.' }),
})

export const PulledDeliveries = namedObject('PulledDeliveries', { deliveries: Type.Array(PulledDelivery) })

/** Backlog of a webhook that pulls (docs/contract/pull.md#backlog). */
export const PullBacklog = namedObject('PullBacklog', {
  waiting: Type.Integer({ description: 'Deliveries that are due. The count stops at 10,000.' }),
  oldest_at: nullable(Type.String({ format: 'date-time', description: 'Since when the longest due one is due.' })),
})

const RECEIPTS = Type.Array(
  Type.String({
    pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:[1-9][0-9]{0,8}$',
    description: 'The `receipt` of a pulled delivery.',
  }),
  { minItems: 1, maxItems: 100, uniqueItems: true },
)

/** Body of an acknowledgement (docs/contract/pull.md#acknowledgement). */
export const AcknowledgeBody = namedObject('AcknowledgeDeliveries', { receipts: RECEIPTS })

/** Body of giving deliveries back (docs/contract/pull.md#giving-back). */
export const GiveBackBody = namedObject('GiveBackDeliveries', { receipts: RECEIPTS })

/** Body of an extension (docs/contract/pull.md#extension). */
export const ExtendBody = namedObject('ExtendLeases', {
  receipts: RECEIPTS,
  lease_seconds: Type.Optional(
    Type.Integer({
      minimum: 10,
      maximum: 600,
      description: 'The time from now to the end of the lease. Default 60.',
    }),
  ),
})

/** Result of each receipt of a request. */
const resultOfEach = <Result extends Parameters<typeof namedObject>[1]>(name: string, result: Result) =>
  namedObject(`${name}s`, { receipts: Type.Array(namedObject(name, { receipt: Type.String(), ...result })) })

/** Result of an acknowledgement. */
const RECEIPT_STATUSES = ['acknowledged', 'expired', 'not_found'] as const
export type ReceiptStatus = (typeof RECEIPT_STATUSES)[number]

export const AcknowledgedReceipts = resultOfEach('AcknowledgedReceipt', {
  status: enumSchema(RECEIPT_STATUSES, {
    description:
      '`acknowledged`: the delivery succeeded by this receipt, now or before. `expired`: its lease ended first, so ' +
      'the delivery comes again or has ended. `not_found`: the webhook has no such delivery.',
  }),
})

/** Result of giving back. */
const RETURN_STATUSES = ['returned', 'expired', 'not_found'] as const
export type ReturnStatus = (typeof RETURN_STATUSES)[number]

export const ReturnedReceipts = resultOfEach('ReturnedReceipt', {
  status: enumSchema(RETURN_STATUSES, {
    description:
      '`returned`: the delivery was given back by this receipt, now or before. `expired`: its lease had ended. ' +
      '`not_found`: the webhook has no such delivery.',
  }),
})

/** Result of an extension. */
const EXTENSION_STATUSES = ['extended', 'expired', 'not_found'] as const
export type ExtensionStatus = (typeof EXTENSION_STATUSES)[number]

export const ExtendedReceipts = resultOfEach('ExtendedReceipt', {
  status: enumSchema(EXTENSION_STATUSES, {
    description:
      '`extended`: the lease ends at `lease_until`. `expired`: it had ended. `not_found`: the webhook has no such ' +
      'delivery.',
  }),
  lease_until: nullable(Type.String({ format: 'date-time', description: 'The end of the lease; null without one.' })),
})

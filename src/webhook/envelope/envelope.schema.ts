import { namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'

/** Body of a delivery (docs/contract/webhooks.md#envelope): thin, never the resource itself. */
export const EnvelopeBody = namedObject(
  'Envelope',
  {
    id: UuidSchema,
    type: Type.String(),
    api_version: Type.String(),
    created_at: TimestampSchema,
    attempt: Type.Integer({ minimum: 1 }),
    data: namedObject(
      'EnvelopeData',
      {
        account: nullable(UuidSchema),
        resource: Type.String(),
        action: Type.String(),
        id: nullable(Type.String()),
        url: nullable(Type.String()),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

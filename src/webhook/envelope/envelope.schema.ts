import { named, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'

/** Body of a delivery (docs/contract/webhooks.md#envelope): thin, never the resource itself. */
export const EnvelopeBody = named(
  'Envelope',
  Type.Object(
    {
      id: UuidSchema,
      type: Type.String(),
      api_version: Type.String(),
      created_at: TimestampSchema,
      attempt: Type.Integer({ minimum: 1 }),
      data: named(
        'EnvelopeData',
        Type.Object(
          {
            account: nullable(UuidSchema),
            resource: Type.String(),
            action: Type.String(),
            id: nullable(Type.String()),
            url: nullable(Type.String()),
          },
          { additionalProperties: false },
        ),
      ),
    },
    { additionalProperties: false },
  ),
)

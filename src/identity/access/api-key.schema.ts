import { lineSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { PatternsSchema } from './role.schema.ts'

const apiKeyMembers = {
  document_id: UuidSchema,
  user: UuidSchema,
  account: nullable(
    Type.String({ ...UuidSchema, description: 'The account that it is bound to: it reaches nothing else.' }),
  ),
  created_with: nullable(
    Type.String({ ...UuidSchema, description: 'The API key that created it, also when that one is revoked.' }),
  ),
  name: Type.String(),
  hint: Type.String({ description: 'The first characters of the key.' }),
  permissions: Type.Array(Type.String()),
  expires_at: nullable(TimestampSchema),
  last_used_at: nullable(Type.String({ format: 'date-time', description: 'Precise to the minute.' })),
  revoked_at: nullable(TimestampSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
}

/** An API key as the API shows it: never the key itself. */
export const ApiKeyRow = namedObject('ApiKey', apiKeyMembers)

/** The answer to create, the only one that shows the key. */
export const ApiKeyWithKey = namedObject('ApiKeyWithKey', {
  ...apiKeyMembers,
  key: nullable(Type.String({ description: '`sbx_...`. Shown once; null in an idempotent replay.' })),
})

export const CreateApiKeyBody = namedObject('CreateApiKey', {
  name: lineSchema(100),
  permissions: Type.Array(PatternsSchema.items, { minItems: 1, maxItems: 500, uniqueItems: true }),
  account: Type.Optional(
    nullable(
      Type.String({
        ...UuidSchema,
        description: 'Binds the key to this account: its permissions hold there only, and it reaches nothing else.',
      }),
    ),
  ),
  expires_at: Type.Optional(nullable(TimestampSchema)),
})

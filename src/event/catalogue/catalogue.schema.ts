import { enumSchema, named, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'

const AccountScopeSchema = named(
  'AccountScope',
  enumSchema(['account', 'none'], {
    description: '`account`: has an owning account, resolved at publish time. `none`: has no owner.',
  }),
)

/** A row of the catalogue as the API shows it. */
export const EventTypeRow = named(
  'EventType',
  Type.Object({
    document_id: UuidSchema,
    internal: Type.String({ description: 'The name: `<resource>.<action>`.' }),
    account_scope: AccountScopeSchema,
    method: nullable(enumSchema(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])),
    route: nullable(Type.String()),
    source: enumSchema(['route', 'synthetic', 'external']),
    description: nullable(Type.String()),
    is_actived: Type.Boolean(),
    is_tenant_visible: Type.Boolean({
      description: 'Whether callers with an account role see it, if it has account scope.',
    }),
    created_at: TimestampSchema,
    updated_at: TimestampSchema,
  }),
)

/** Registers an event type that another service owns (docs/contract/events.md#publishing-from-outside). */
export const CreateEventTypeBody = named(
  'CreateEventType',
  Type.Object(
    {
      internal: Type.String({
        pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*\\.[a-z][a-z0-9]*(-[a-z0-9]+)*$',
        maxLength: 128,
        description: '`<resource>.<action>`, lower case, words joined by hyphens.',
      }),
      account_scope: Type.Optional(AccountScopeSchema),
      description: Type.Optional(nullable(Type.String({ maxLength: 500 }))),
      is_tenant_visible: Type.Optional(Type.Boolean({ description: 'Default false.' })),
    },
    { additionalProperties: false },
  ),
)

/** Shows an event type to account roles, or hides it. */
export const VisibleBody = named('SetTenantVisible', Type.Object({ is_tenant_visible: Type.Boolean() }))

/** The comparison of the `event` table with the code. */
export const CatalogueStatusSchema = named(
  'CatalogueStatus',
  Type.Object({
    generated_count: Type.Integer(),
    synced_count: Type.Integer(),
    in_sync: Type.Boolean(),
    missing_internals: Type.Array(Type.String()),
    stale_internals: Type.Array(Type.String()),
    written: Type.Optional(Type.Integer({ description: 'Rows that a sync wrote.' })),
  }),
)

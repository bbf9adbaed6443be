import { enumSchema, named, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'

/** Maximum number of subscriptions of an event type read for a count. */
export const SUBSCRIBERS_LIMIT = 1_000

const AccountScopeSchema = named(
  'AccountScope',
  enumSchema(['account', 'none'], {
    description: '`account`: has an owning account, resolved at publish time. `none`: has no owner.',
  }),
)

/** The body of a delivery (docs/contract/webhooks.md#envelope). */
const ExampleSchema = namedObject(
  'EventExample',
  {
    id: UuidSchema,
    type: Type.String(),
    api_version: Type.String(),
    created_at: TimestampSchema,
    attempt: Type.Integer(),
    data: namedObject('EventExampleData', {
      account: nullable(UuidSchema),
      resource: Type.String(),
      action: Type.String(),
      id: nullable(Type.String()),
      url: nullable(Type.String()),
    }),
  },
  { description: 'The body of a delivery of such an event.' },
)

/** A row of the catalogue as the API shows it. */
export const EventTypeRow = namedObject('EventType', {
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
  group: nullable(Type.String({ description: 'What it is listed under.' })),
  deprecated_at: nullable({
    ...TimestampSchema,
    description: 'From when on not to subscribe to it; null for never.',
  }),
  deprecation_remedy: nullable(Type.String({ description: 'What to subscribe to instead, or to do.' })),
  example: nullable(ExampleSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

const GroupSchema = nullable(
  Type.String({
    pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*$',
    maxLength: 50,
    description: 'What it is listed under: lower case, words joined by hyphens.',
  }),
)

/** Describes an external event type anew. An absent member stays (docs/contract/events.md#deprecation). */
export const UpdateEventTypeBody = namedObject(
  'UpdateEventType',
  {
    description: Type.Optional(nullable(Type.String({ maxLength: 500 }))),
    group: Type.Optional(GroupSchema),
    deprecated_at: Type.Optional(
      nullable({
        ...TimestampSchema,
        description: 'From when on not to subscribe to it; null ends the deprecation.',
      }),
    ),
    deprecation_remedy: Type.Optional(
      nullable(Type.String({ minLength: 1, maxLength: 500, description: 'What to subscribe to instead, or to do.' })),
    ),
  },
  { minProperties: 1 },
)

/** Registers an event type that another service owns (docs/contract/events.md#publishing-from-outside). */
export const CreateEventTypeBody = namedObject('CreateEventType', {
  internal: Type.String({
    pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*\\.[a-z][a-z0-9]*(-[a-z0-9]+)*$',
    maxLength: 128,
    description: '`<resource>.<action>`, lower case, words joined by hyphens.',
  }),
  account_scope: Type.Optional(AccountScopeSchema),
  description: Type.Optional(nullable(Type.String({ maxLength: 500 }))),
  is_tenant_visible: Type.Optional(Type.Boolean({ description: 'Default false.' })),
  group: Type.Optional(GroupSchema),
})

/** Shows an event type to account roles, or hides it. */
export const VisibleBody = namedObject('SetTenantVisible', { is_tenant_visible: Type.Boolean() })

const SubscribersSchema = Type.Integer({
  description: `Webhooks that subscribe to it, among its first ${SUBSCRIBERS_LIMIT} subscriptions.`,
})

/** The comparison of the `event` table with the code, and the last sync. */
const comparisonMembers = {
  generated_count: Type.Integer(),
  synced_count: Type.Integer(),
  in_sync: Type.Boolean(),
  missing_internals: Type.Array(Type.String()),
  stale_internals: Type.Array(Type.String()),
  differences: Type.Array(
    namedObject('CatalogueDifference', {
      internal: Type.String(),
      member: enumSchema(['account_scope', 'method', 'route', 'source']),
      is: nullable(Type.String({ description: 'Of the table.' })),
      becomes: nullable(Type.String({ description: 'Of the code: a sync writes it.' })),
    }),
    { description: 'The members in which rows differ from the code.' },
  ),
  last_sync: nullable(
    namedObject('LastCatalogueSync', {
      at: TimestampSchema,
      by: nullable({ ...UuidSchema, description: 'The user; null where a deployment or a command made it.' }),
      written: Type.Integer({ description: 'Rows that it wrote.' }),
      version: Type.String({ description: 'The version of the service that made it.' }),
    }),
  ),
}

export const CatalogueStatusSchema = namedObject('CatalogueStatus', {
  ...comparisonMembers,
  stale: Type.Array(
    namedObject('StaleEventType', {
      document_id: UuidSchema,
      internal: Type.String(),
      is_actived: Type.Boolean(),
      subscribers: SubscribersSchema,
    }),
    { description: 'The rows of `stale_internals`.' },
  ),
})

/** The comparison behind a sync. */
export const CatalogueSyncSchema = namedObject('CatalogueSync', {
  ...comparisonMembers,
  written: Type.Integer({ description: 'Rows that the sync wrote.' }),
})

/** Number of webhooks that subscribe to each event type. */
export const SubscriberCounts = named(
  'SubscriberCounts',
  Type.Array(
    namedObject('SubscriberCount', {
      document_id: UuidSchema,
      internal: Type.String(),
      subscribers: SubscribersSchema,
    }),
  ),
)

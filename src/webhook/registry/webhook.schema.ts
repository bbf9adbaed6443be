import { EventTypeRow } from '../../event/catalogue/catalogue.schema.ts'
import { enumSchema, namedObject, nullable, ROW_STAMPS, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { link } from '../event-set/subscription.store.ts'

/** Reasons for which the service disables a webhook (docs/contract/webhooks.md#webhook). */
const DISABLED_REASONS = ['consecutive-failures', 'account-deleted', 'legacy-secret-rotation-required'] as const
export type DisabledReason = (typeof DISABLED_REASONS)[number]

const URL_RULES = 'The callback URL: HTTPS, a public host, at most 2048 characters. http:// only in development.'
const UrlSchema = Type.String({ minLength: 1, description: URL_RULES })

/** Mode of a webhook (docs/contract/pull.md#mode). */
const MODES = ['push', 'pull'] as const
export type WebhookMode = (typeof MODES)[number]
const NameSchema = nullable(Type.String({ maxLength: 100 }))
const DescriptionSchema = nullable(Type.String({ maxLength: 500 }))
const AccountSchema = nullable(UuidSchema)

/** Resources that a webhook is limited to (docs/contract/webhooks.md#resources). An id is as long as that of a published event. */
const ResourceIdsSchema = nullable(
  Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
    minItems: 1,
    maxItems: 100,
    uniqueItems: true,
    description: 'Ids of resources: only their events are delivered. Null for the events of all resources.',
  }),
)

/** The subscriber's own headers (docs/contract/webhooks.md#headers-of-the-subscriber). Names are checked by `readHeaders`. */
const HeadersSchema = Type.Record(
  Type.String(),
  Type.String({ minLength: 1, maxLength: 1024, pattern: '^[\\x21-\\x7e](?:[\\x20-\\x7e]*[\\x21-\\x7e])?$' }),
  {
    maxProperties: 10,
    description: 'Headers that every delivery carries. They replace those before; no answer shows their values.',
  },
)

/** Users who get mails about the webhook (docs/contract/delivery.md#mails), beside the administrators of its account. */
const ContactsSchema = Type.Array(UuidSchema, {
  maxItems: 10,
  uniqueItems: true,
  description: 'Ids of members of its account who get mails about it, beside the administrators of the account.',
})

const AsymmetricSchema = Type.Boolean({
  description: 'Whether deliveries also carry an Ed25519 signature (`v1a`), under a key of this webhook alone.',
})

/** A secret of a known value (docs/contract/webhooks.md#secret-of-a-known-value). Checked by `checkImportedSecret`. */
const ImportedSecretSchema = Type.String({
  minLength: 1,
  maxLength: 100,
  description:
    'A secret that another system has made: `whsec_` and the base64 of 24 to 64 bytes. Default: a new one. Needs ' +
    '`webhook:import` for all accounts.',
})
/** The highest `max_per_second`. */
export const MOST_PER_SECOND = 1_000

/** Attempts that may start in a second (docs/contract/webhooks.md#throttle). */
const MaxPerSecondSchema = nullable(
  Type.Integer({
    minimum: 1,
    maximum: MOST_PER_SECOND,
    description: 'Most attempts that start in any second; further deliveries wait. Null for no limit.',
  }),
)

/** Entries of an event set (docs/contract/webhooks.md#event-set). */
const EventEntriesSchema = Type.Array(
  Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'The name of an event type, such as `contract.update`, or its id.',
  }),
  { minItems: 1, maxItems: 1000 },
)

/** The public row of a webhook (docs/contract/webhooks.md#webhook). Never with its secret. */
const webhookMembers = {
  document_id: UuidSchema,
  url: Type.String({ description: 'Empty for the mode `pull`.' }),
  name: nullable(Type.String()),
  description: nullable(Type.String()),
  is_global: Type.Boolean({ description: 'Receives the subscribed events of every account.' }),
  account: AccountSchema,
  resource_ids: nullable(
    Type.Array(Type.String(), { description: 'The only resources whose events it receives; null for all.' }),
  ),
  header_names: Type.Array(Type.String(), { description: 'Names of its own headers, whose values are never shown.' }),
  contacts: Type.Array(UuidSchema, { description: 'Members of its account who get mails about it.' }),
  public_key: nullable(
    Type.String({ description: '`whpk_...`: the key of its asymmetric signatures; null without them.' }),
  ),
  previous_public_key: nullable(Type.String({ description: 'The key before the last rotation.' })),
  previous_public_key_until: nullable(TimestampSchema),
  max_per_second: nullable(Type.Integer({ description: 'Most attempts that start in any second; null for no limit.' })),
  mode: enumSchema(MODES, { description: '`push`: the service posts to its URL. `pull`: it fetches its deliveries.' }),
  is_actived: Type.Boolean(),
  consecutive_failures: Type.Integer(),
  disabled_at: nullable(TimestampSchema),
  disabled_reason: nullable(enumSchema(DISABLED_REASONS, { description: 'Why the service disabled it.' })),
  ...ROW_STAMPS,
}
export const WebhookRow = namedObject('Webhook', webhookMembers)

/** The answer to create and to rotate-secret, which alone show the secret. */
export const WebhookWithSecret = namedObject('WebhookWithSecret', {
  ...webhookMembers,
  secret: nullable(
    Type.String({ description: '`whsec_...`. Shown once; null in an idempotent replay, and for a given secret.' }),
  ),
})

export const CreateWebhookBody = namedObject('CreateWebhook', {
  mode: Type.Optional(enumSchema(MODES, { description: 'Default `push`. It never changes.' })),
  url: Type.Optional(
    Type.String({ minLength: 1, description: `${URL_RULES} Required for the mode \`push\`, absent for \`pull\`.` }),
  ),
  name: Type.Optional(NameSchema),
  description: Type.Optional(DescriptionSchema),
  is_global: Type.Optional(Type.Boolean({ description: 'Default false.' })),
  account: Type.Optional(AccountSchema),
  resource_ids: Type.Optional(ResourceIdsSchema),
  headers: Type.Optional(HeadersSchema),
  contacts: Type.Optional(ContactsSchema),
  asymmetric_signature: Type.Optional(AsymmetricSchema),
  secret: Type.Optional(ImportedSecretSchema),
  max_per_second: Type.Optional(MaxPerSecondSchema),
  events: Type.Optional(EventEntriesSchema),
})

export const UpdateWebhookBody = namedObject(
  'UpdateWebhook',
  {
    url: Type.Optional(UrlSchema),
    name: Type.Optional(NameSchema),
    description: Type.Optional(DescriptionSchema),
    is_global: Type.Optional(Type.Boolean()),
    account: Type.Optional(AccountSchema),
    resource_ids: Type.Optional(ResourceIdsSchema),
    headers: Type.Optional(HeadersSchema),
    contacts: Type.Optional(ContactsSchema),
    asymmetric_signature: Type.Optional(AsymmetricSchema),
    max_per_second: Type.Optional(MaxPerSecondSchema),
  },
  { minProperties: 1 },
)

/** The full desired event set; `webhook.test` is added when it is missing. */
export const EventSetBody = namedObject('ReplaceEventSet', { events: EventEntriesSchema })

/** A link between a webhook and an event type. */
export const SubscriptionRow = namedObject('Subscription', {
  document_id: UuidSchema,
  webhook: UuidSchema,
  event: UuidSchema,
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
  deleted_at: nullable(TimestampSchema),
})

/** A subscription without effect, or to a deprecated event type, with the reason. */
const WarningSchema = namedObject('SubscriptionWarning', {
  event: Type.String(),
  code: Type.String(),
  message: Type.String(),
})

/** A webhook's event set. */
export const EventSet = namedObject('EventSet', {
  webhook: UuidSchema,
  events: Type.Array(EventTypeRow),
  warnings: Type.Array(WarningSchema),
})

export const SubscriptionWithWarnings = namedObject('SubscriptionWithWarnings', {
  ...SubscriptionRow.properties,
  warnings: Type.Array(WarningSchema),
})

export const CreateSubscriptionBody = namedObject('CreateSubscription', { webhook: UuidSchema, event: UuidSchema })
export const UpdateSubscriptionBody = namedObject('UpdateSubscription', { event: UuidSchema })

/** Maps a link for the wire. */
export const toSubscriptionRow = wireOf(link, SubscriptionRow)

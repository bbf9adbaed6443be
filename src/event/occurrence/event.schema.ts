import { namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { MAX_RESOURCE_URL_LENGTH } from './resource-url.ts'

/** One event as the API shows it. */
export const EventRow = namedObject('EventOccurrence', {
  document_id: Type.String({ ...UuidSchema, description: 'What every subscriber receives as `id`.' }),
  event: Type.String({ description: 'The event type.' }),
  account: nullable(UuidSchema),
  resource: Type.String(),
  action: Type.String(),
  resource_id: nullable(Type.String({ description: 'The id of the resource it is about.' })),
  url: nullable(Type.String({ description: 'The path of the call that reads the resource.' })),
  is_purge: Type.Boolean({ description: 'A purge reaches global webhooks only.' }),
  excluded_webhook: nullable(
    Type.String({ ...UuidSchema, description: 'The webhook it is about, which never gets it.' }),
  ),
  routed_at: nullable(
    Type.String({
      ...TimestampSchema,
      description: 'When its ledger rows were written; null while it waits for that.',
    }),
  ),
  created_at: TimestampSchema,
  updated_at: Type.String({
    ...TimestampSchema,
    description: 'When it was routed, the one thing that changes; else `created_at`.',
  }),
})

const publicationMembers = {
  event: Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'An active event type with the source `external`.',
  }),
  account: Type.Optional(
    nullable(
      Type.String({
        ...UuidSchema,
        description: 'The owning account. Null or left out: only global webhooks receive the event.',
      }),
    ),
  ),
  id: Type.String({ minLength: 1, maxLength: 255, description: "The resource's id in the service that owns it." }),
  url: Type.Optional(
    nullable(
      Type.String({
        maxLength: MAX_RESOURCE_URL_LENGTH,
        description:
          'Where the service that owns the resource serves it: https, without credentials. Becomes `data.url`.',
      }),
    ),
  ),
  idempotency_key: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'The same key of the same caller within 24 hours gives the earlier event and records nothing anew.',
    }),
  ),
}

/** One event, or up to 1,000 of them. */
export const PublishBody = namedObject('PublishEvents', {
  event: Type.Optional(publicationMembers.event),
  account: publicationMembers.account,
  id: Type.Optional(publicationMembers.id),
  url: publicationMembers.url,
  idempotency_key: publicationMembers.idempotency_key,
  events: Type.Optional(
    Type.Array(namedObject('Publication', publicationMembers), {
      minItems: 1,
      maxItems: 1000,
      description: 'Several events, in place of the other members. All are recorded, or none.',
    }),
  ),
})

export const PublishAnswer = namedObject('PublishedEvents', {
  accepted: Type.Integer({ description: 'How many events the request held.' }),
  events: Type.Array(namedObject('AcceptedEvent', { event_id: UuidSchema }), {
    description: 'In the order of the request.',
  }),
})

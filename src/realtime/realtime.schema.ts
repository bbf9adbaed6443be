import { enumSchema, named, namedObject, nullable, TimestampSchema, UuidSchema } from '../http/route/schema.ts'
import { Type } from '../http/shape/schema-type.ts'
import { CHANNEL_EVENT_NAMES } from './channel/channel-event.ts'
import { MESSAGE_STATUSES } from './channel/message.store.ts'

const SocketId = Type.String({
  pattern: '^[0-9]{1,20}[.][0-9]{1,20}$',
  description: 'The id that the provider gave the connection.',
})

const ChannelName = Type.String({
  maxLength: 100,
  pattern: '^private-(account|contract)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  description: 'A private channel, with its UUID in lower case.',
})

const PresenceName = Type.String({
  maxLength: 100,
  pattern: '^presence-(account|contract)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  description: 'A presence channel, with its UUID in lower case.',
})

/** Members added by a client library are ignored. */
const OPEN = { additionalProperties: true }

export const AuthorizeBody = namedObject(
  'AuthorizeChannel',
  {
    socket_id: SocketId,
    channel_name: ChannelName,
    resume: Type.Optional(Type.Boolean({ description: 'Whether the answer names the `position`. JSON only.' })),
  },
  OPEN,
)

export const ChannelAuthorization = namedObject('ChannelAuthorization', {
  auth: Type.String({ description: '`<key>:<hex hmac-sha256>`.' }),
  position: Type.Optional({
    ...TimestampSchema,
    description: 'Where a resume begins; only if asked for by `resume`.',
  }),
})

export const AuthorizeMemberBody = namedObject(
  'AuthorizeMember',
  { socket_id: SocketId, channel_name: PresenceName },
  OPEN,
)

export const MemberAuthorization = namedObject('MemberAuthorization', {
  auth: Type.String({ description: '`<key>:<hex hmac-sha256>`.' }),
  channel_data: Type.String({
    description: 'JSON text with `user_id`, and `user_info` with the `name` of the user and the instant `since`.',
  }),
})

export const ResumeBody = namedObject('ResumeChannel', {
  channel_name: ChannelName,
  since: { ...TimestampSchema, description: 'The `position` of the last complete subscription.' },
  after: Type.Optional({
    ...UuidSchema,
    description: 'The id of the last message that arrived since. An unknown one counts as none.',
  }),
})

export const ResumedChannel = namedObject('ResumedChannel', {
  missed: Type.Boolean({ description: 'Whether some can no longer be given: the data has to be read again.' }),
  messages: Type.Array(
    namedObject('ReplayedMessage', {
      id: Type.String({ ...UuidSchema, description: 'The id of the event.' }),
      type: nullable(Type.String({ description: 'The event type.' })),
      api_version: Type.String(),
      created_at: TimestampSchema,
      data: namedObject('ReplayedMessageData', {
        account: nullable(UuidSchema),
        resource: nullable(Type.String()),
        action: nullable(Type.String()),
        id: nullable(Type.String({ description: 'The id of the resource.' })),
        url: nullable(Type.String()),
      }),
    }),
    { maxItems: 1_000, description: 'In the order of the channel. Some that arrived before may be among them.' },
  ),
})

export const AuthenticateBody = namedObject('AuthenticateConnection', { socket_id: SocketId }, OPEN)

export const ConnectionAuthentication = namedObject('ConnectionAuthentication', {
  auth: Type.String({ description: '`<key>:<hex hmac-sha256>`.' }),
  user_data: Type.String({ description: 'JSON text with the `id` of the user.' }),
})

export const TestEventBody = namedObject('PublishTestEvent', {
  channel_name: ChannelName,
  text: Type.Optional(Type.String({ maxLength: 1_000, default: '', description: 'Text of the message.' })),
})

export const PublishedTestEvent = namedObject('PublishedTestEvent', {
  event: Type.String({ description: 'The name of the event.' }),
  channel: Type.String(),
})

export const RealtimeConfig = namedObject('RealtimeConfig', {
  key: Type.String({ description: 'The public key of the application.' }),
  cluster: Type.String(),
  ws_host: Type.String(),
  ws_port: Type.Integer(),
  ws_path: Type.String({ description: 'Prefix of `/app/<key>` in the path.' }),
  force_tls: Type.Boolean(),
})

export const MessageRow = namedObject('RealtimeMessage', {
  document_id: Type.String({ ...UuidSchema, description: 'The id of the event.' }),
  account: UuidSchema,
  event: Type.String({ description: 'The event type: the name of the message on its channels.' }),
  channels: Type.Array(Type.String()),
  status: enumSchema(MESSAGE_STATUSES),
  attempts: Type.Integer(),
  last_status_code: nullable(Type.Integer()),
  last_error: nullable(Type.String({ description: 'The class of the last failure.' })),
  last_duration_ms: nullable(Type.Integer()),
  last_attempt_at: nullable(TimestampSchema),
  next_attempt_at: nullable(TimestampSchema),
  ended_at: nullable(TimestampSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

export const OccupiedChannels = named(
  'OccupiedChannels',
  Type.Array(
    namedObject('OccupiedChannel', {
      name: Type.String(),
      subscription_count: nullable(Type.Integer({ description: 'Null where the provider does not count.' })),
      member_count: nullable(Type.Integer({ description: 'Members of a presence channel; null for others.' })),
      occupied_since: nullable({ ...TimestampSchema, description: 'Null where nothing was reported.' }),
    }),
  ),
)

export const ChannelParams = Type.Object({ name: PresenceName })

export const ChannelMembers = named(
  'ChannelMembers',
  Type.Array(
    namedObject('ChannelMember', {
      user_id: Type.String({ description: 'The id that the authorization gave the provider: that of the user.' }),
      since: nullable({
        ...TimestampSchema,
        description: 'When it came; null where nothing was reported within a day.',
      }),
    }),
  ),
)

export const ChannelEventRow = namedObject('RealtimeChannelEvent', {
  document_id: UuidSchema,
  name: enumSchema(CHANNEL_EVENT_NAMES),
  channel: Type.String(),
  user_id: nullable(Type.String({ description: 'The member, or the sender of a client event.' })),
  event: nullable(Type.String({ description: 'The name of a client event.' })),
  bytes: nullable(Type.Integer({ description: 'The size of its data, which is not kept.' })),
  subscription_count: nullable(Type.Integer()),
  happened_at: TimestampSchema,
  created_at: TimestampSchema,
  updated_at: { ...TimestampSchema, description: 'As `created_at`: an event that happened is not changed.' },
})

export const ProviderWebhookBody = namedObject(
  'RealtimeProviderWebhook',
  {
    time_ms: Type.Integer({ minimum: 0, description: 'When the provider sent it, in milliseconds.' }),
    events: Type.Array(namedObject('RealtimeProviderEvent', { name: Type.String({ maxLength: 200 }) }, OPEN), {
      maxItems: 1_000,
    }),
  },
  OPEN,
)

export const ProviderWebhookAnswer = namedObject('AcceptedProviderWebhook', {
  accepted: Type.Integer({ description: 'How many events it held.' }),
})

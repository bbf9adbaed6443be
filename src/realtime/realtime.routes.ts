import { buildList, buildWholeList } from '../http/listing/page.ts'
import { defineRoute, type Routes } from '../http/route/route.ts'
import { defineList } from '../http/route/row-route.ts'
import { wireOf } from '../http/shape/wire-row.ts'
import { NO_STORE, readHeader } from '../identity/session/session.routes.ts'
import type { RecordOf } from '../postgres/statement/record.ts'
import {
  type AuthorizationDeps,
  authenticateConnection,
  authorizeSubscription,
  requireApp,
} from './authorization/authorization.ts'
import { AUTH_PERMISSION } from './authorization/channel-access.ts'
import { listChannels } from './channel/channel.ts'
import {
  channelEvent,
  readOccupiedSince,
  recordChannelEvents,
  selectChannelEvents,
} from './channel/channel-event.store.ts'
import { type MessageRecord, message, selectMessages } from './channel/message.store.ts'
import { listOccupiedChannels } from './provider/occupied-channels.ts'
import type { ProviderClient } from './provider/provider-client.ts'
import { checkProviderTime, checkProviderWebhook, readReports } from './provider/provider-webhook.ts'
import {
  AuthenticateBody,
  AuthorizeBody,
  ChannelAuthorization,
  ChannelEventRow,
  ConnectionAuthentication,
  MessageRow,
  OccupiedChannels,
  ProviderWebhookAnswer,
  ProviderWebhookBody,
  RealtimeConfig,
} from './realtime.schema.ts'

/** Permission for the views of operators. */
const INSPECT_PERMISSION = 'realtime:inspect'

export interface RealtimeDeps extends AuthorizationDeps {
  client: Pick<ProviderClient, 'send'> | undefined
  countProviderEvent: (name: string) => void
}

/** A provider puts many events into one webhook, and client events with up to 10 KiB of data each. */
const WEBHOOK_LIMIT_BYTES = 1_048_576

const MESSAGE_FIELDS = {
  document_id: { type: 'uuid' },
  account: { type: 'uuid' },
  event: { type: 'text' },
  status: { type: 'text' },
  created_at: { type: 'timestamp', sortable: true },
} as const

const toStoredMessage = wireOf(message, MessageRow)
const toMessageRow = (record: MessageRecord) => ({ ...toStoredMessage(record), channels: listChannels(record) })

const toStoredEvent = wireOf(channelEvent, ChannelEventRow)
const toChannelEventRow = (record: RecordOf<typeof channelEvent>) => ({
  ...toStoredEvent(record),
  updated_at: record.createdAt.toISOString(),
})

const CHANNEL_EVENT_FIELDS = {
  document_id: { type: 'uuid' },
  name: { type: 'text' },
  channel: { type: 'text' },
  user_id: { type: 'text' },
  event: { type: 'text' },
  happened_at: { type: 'timestamp' },
  created_at: { type: 'timestamp', sortable: true },
} as const

const OF_REALTIME = { resource: 'realtime', accountScope: 'none' } as const

/** Channels for clients, and views for operators (docs/contract/realtime.md). */
export const realtimeRoutes: Routes<RealtimeDeps> = [
  defineRoute(
    {
      ...OF_REALTIME,
      method: 'POST',
      path: '/api/v3/realtime/realtime/auth',
      action: 'auth',
      permission: AUTH_PERMISSION,
      ownAccounts: true,
      writes: false,
      takesForm: true,
      bare: true,
      summary: 'Authorize a private-channel subscription',
      description:
        'For client libraries of the Pusher protocol. The caller must belong to the account of the channel, or to the account that owns the contract; administrators may join every channel. Takes JSON and forms; members that are not listed are ignored.',
      body: AuthorizeBody,
      data: ChannelAuthorization,
      problems: ['permission_denied', 'realtime_unavailable'],
    },
    async (deps: RealtimeDeps, { db, body, caller, now }) => {
      const request = { socketId: body.socket_id, channel: body.channel_name, caller }
      const answer = await authorizeSubscription(deps, db, request)
      const data = body.resume ? { ...answer, position: now.toISOString() } : answer
      return { data, message: 'Authorized.', headers: NO_STORE }
    },
  ),
  defineRoute(
    {
      ...OF_REALTIME,
      method: 'POST',
      path: '/api/v3/realtime/realtime/user-auth',
      action: 'user-auth',
      permission: AUTH_PERMISSION,
      ownAccounts: true,
      writes: false,
      takesForm: true,
      bare: true,
      summary: 'Authenticate the caller at a realtime connection',
      description:
        'For the sign-in of client libraries of the Pusher protocol: the provider can then end the connections of this user.',
      body: AuthenticateBody,
      data: ConnectionAuthentication,
      problems: ['realtime_unavailable'],
    },
    async (deps: RealtimeDeps, { body, caller }) => ({
      data: await authenticateConnection(deps, { socketId: body.socket_id, caller }),
      message: 'Authenticated.',
      headers: NO_STORE,
    }),
  ),
  defineRoute(
    {
      ...OF_REALTIME,
      method: 'GET',
      path: '/api/v3/realtime/realtime/config',
      action: 'config',
      access: 'public',
      summary: 'Public settings of realtime connections',
      description: 'Connection settings for a client, from the configuration of the server.',
      data: RealtimeConfig,
      problems: ['realtime_unavailable'],
    },
    async (deps: RealtimeDeps) => {
      const { key, cluster, socket } = requireApp(deps)
      return {
        data: { key, cluster, ws_host: socket.host, ws_port: socket.port, ws_path: '', force_tls: socket.isTls },
        message: 'Realtime settings.',
      }
    },
  ),
  defineList(
    {
      path: '/api/v3/realtime/message',
      resource: 'realtime-message',
      permission: INSPECT_PERMISSION,
      ownAccounts: true,
      cell: { by: 'scope', several: 'merge' },
      summary: 'List realtime messages',
      description: 'Recent messages with their outcome. Ended messages are kept for three days.',
      data: MessageRow,
      list: MESSAGE_FIELDS,
      readsReplica: true,
    },
    {
      rows: ({ db, scope }) => buildList(scope, (own) => selectMessages(db, own)),
      toRow: toMessageRow,
      message: 'Realtime messages.',
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/realtime/channel',
      resource: 'realtime-channel',
      action: 'find-all',
      permission: INSPECT_PERMISSION,
      accountScope: 'none',
      summary: 'List occupied private and presence channels',
      description: 'The channels with at least one subscription, as the realtime provider reports them.',
      data: OccupiedChannels,
      problems: ['realtime_unavailable'],
    },
    {
      prepare: async (deps: RealtimeDeps) => {
        requireApp(deps)
        return deps.client ? listOccupiedChannels(deps.client) : []
      },
      handle: async (_deps: RealtimeDeps, { db, prepared }) => {
        const since = await readOccupiedSince(
          db,
          prepared.map(({ name }) => name),
        )
        const data = prepared.map(({ name, subscriptionCount, memberCount }) => ({
          name,
          subscription_count: subscriptionCount,
          member_count: memberCount,
          occupied_since: since.get(name)?.toISOString() ?? null,
        }))
        return { data, message: 'Occupied channels.' }
      },
    },
  ),
  defineList(
    {
      path: '/api/v3/realtime/channel-event',
      resource: 'realtime-channel-event',
      permission: INSPECT_PERMISSION,
      summary: 'List events of realtime channels',
      description:
        'Channels that were occupied and vacated, their subscriptions, members and client events, as the provider or the embedded server reports them. To follow them, ask again for those after the last `created_at`, oldest first. Kept for one day.',
      data: ChannelEventRow,
      list: CHANNEL_EVENT_FIELDS,
      readsReplica: true,
    },
    {
      rows: ({ db }) => buildWholeList(selectChannelEvents(db)),
      toRow: toChannelEventRow,
      message: 'Events of realtime channels.',
    },
  ),
  defineRoute(
    {
      ...OF_REALTIME,
      method: 'POST',
      path: '/api/v3/realtime/realtime/webhook',
      action: 'webhook',
      access: 'public',
      event: 'none',
      writes: false,
      summary: 'Take a webhook of the realtime provider',
      description:
        'Signed by the provider: `X-Pusher-Key` and `X-Pusher-Signature`. Repeated webhooks record their events once.',
      bodyLimitBytes: WEBHOOK_LIMIT_BYTES,
      body: ProviderWebhookBody,
      data: ProviderWebhookAnswer,
      problems: ['signature_invalid', 'realtime_unavailable'],
    },
    {
      // The signature is checked before the body, so that unsigned requests learn nothing of the rules.
      row: {
        find: async (deps: RealtimeDeps, { headers, rawBody }) => {
          const [key, signature] = [readHeader(headers, 'x-pusher-key'), readHeader(headers, 'x-pusher-signature')]
          checkProviderWebhook(requireApp(deps), { key, signature, rawBody })
        },
        neededBy: 'handle',
      },
      handle: async (deps: RealtimeDeps, { db, body, rawBody, now }) => {
        checkProviderTime(body.time_ms, now)
        await recordChannelEvents(db, readReports(body, rawBody), now)
        for (const { name } of body.events) deps.countProviderEvent(name)
        return { data: { accepted: body.events.length }, message: 'Webhook accepted.' }
      },
    },
  ),
]

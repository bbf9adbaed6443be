import type { RealtimeLimits } from '../../realtime/embedded/frame/limits.ts'
import { decideRealtimeSettings, type RealtimeSettings } from '../../realtime/provider/provider-settings.ts'
import type { Values } from './config-variables.ts'

/** The limits of the embedded server that are settings. */
export type RealtimeServerLimits = Partial<RealtimeLimits>

/** Messages that may come at once, for each that may come in a second. */
const BURST = 6

/** Reads the settings of the provider. Pure. */
export function readRealtimeSettings(values: Values): RealtimeSettings {
  return decideRealtimeSettings({
    appId: values.INTEGRATION_REALTIME_APP_ID,
    key: values.INTEGRATION_REALTIME_KEY,
    secret: values.INTEGRATION_REALTIME_SECRET,
    cluster: values.INTEGRATION_REALTIME_CLUSTER,
    useTls: values.INTEGRATION_REALTIME_USE_TLS ?? true,
    host: values.INTEGRATION_REALTIME_HOST,
    port: values.INTEGRATION_REALTIME_PORT,
    runsEmbedded: (values.APP_ENV ?? 'development') === 'development' && values.INTEGRATION_REALTIME_EMBEDDED !== false,
  })
}

/** Reads the settings beside the provider. Pure. */
export function readRealtimeConfig(values: Values) {
  return {
    realtimeLimits: readRealtimeLimits(values),
    /** Origins whose pages may connect to the embedded server; undefined: all. */
    realtimeOrigins: values.REALTIME_ALLOWED_ORIGINS,
    /** The subject of the bus between its processes; undefined: PostgreSQL carries everything. */
    realtimeBusSubject: values.REALTIME_BUS_SUBJECT,
    /** Whether operators may publish test events on channels. */
    realtimeTestEvents: values.INTEGRATION_REALTIME_TEST_EVENTS ?? values.APP_ENV !== 'production',
  }
}

/** Reads the limits of the embedded server, without unset ones. Pure. */
function readRealtimeLimits(values: Values): RealtimeServerLimits {
  const perSecond = values.REALTIME_MESSAGES_PER_SECOND
  const given = {
    connections: values.REALTIME_MAX_CONNECTIONS,
    connectionsPerAddress: values.REALTIME_MAX_CONNECTIONS_PER_ADDRESS,
    newConnectionsPerAddress: values.REALTIME_NEW_CONNECTIONS_PER_ADDRESS,
    channelsPerConnection: values.REALTIME_MAX_CHANNELS,
    members: values.REALTIME_MAX_MEMBERS,
    messageBytes: values.REALTIME_MAX_MESSAGE_BYTES,
    eventBytes: values.REALTIME_MAX_EVENT_BYTES,
    messagesPerSecond: perSecond,
    messageBurst: perSecond === undefined ? undefined : perSecond * BURST,
    clientEventsPerSecond: values.REALTIME_CLIENT_EVENTS_PER_SECOND,
    authorizeWithinSeconds: values.REALTIME_AUTHORIZE_WITHIN_SECONDS,
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

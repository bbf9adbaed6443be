import { busSubject, cluster, flag, hostName, integer, origins, text } from './config-parsers.ts'
import { secretVariable, variable } from './variable.ts'

/** The settings of realtime: its provider, and the limits of docs/contract/realtime-server.md#limits. */
export const REALTIME_VARIABLES = {
  INTEGRATION_REALTIME_APP_ID: variable(text, 'none', 'Realtime provider: application id.'),
  INTEGRATION_REALTIME_KEY: variable(text, 'none', 'Realtime provider: public key.'),
  INTEGRATION_REALTIME_SECRET: secretVariable(text, 'none', 'Realtime provider: server secret.'),
  INTEGRATION_REALTIME_CLUSTER: variable(
    cluster,
    'none',
    'Realtime provider: cluster name. `embedded` is the server of the service itself.',
  ),
  INTEGRATION_REALTIME_USE_TLS: variable(flag, 'true', 'Whether the realtime provider is reached over TLS.'),
  INTEGRATION_REALTIME_HOST: variable(
    hostName,
    'that of the cluster',
    'The host of a self-hosted server that speaks the Pusher protocol, without scheme and port.',
  ),
  INTEGRATION_REALTIME_PORT: variable(integer(1, 65535), '443, or 80 without TLS', 'Its port.'),
  INTEGRATION_REALTIME_EMBEDDED: variable(flag, 'true', 'Whether development runs an embedded realtime server.'),
  INTEGRATION_REALTIME_TEST_EVENTS: variable(
    flag,
    'true, in production false',
    'Whether operators may publish test events on realtime channels.',
  ),
  REALTIME_MAX_CONNECTIONS: variable(
    integer(1, 1_000_000),
    'HTTP_MAX_CONNECTIONS',
    'Embedded realtime server: limit of open connections of one process. At most HTTP_MAX_CONNECTIONS.',
  ),
  REALTIME_MAX_CONNECTIONS_PER_ADDRESS: variable(
    integer(1, 1_000_000),
    '500',
    'Embedded realtime server: limit of open connections of one address.',
  ),
  REALTIME_NEW_CONNECTIONS_PER_ADDRESS: variable(
    integer(1, 10_000_000),
    '600',
    'Embedded realtime server: limit of new connections of one address in a minute.',
  ),
  REALTIME_MAX_CHANNELS: variable(
    integer(1, 10_000),
    '100',
    'Embedded realtime server: limit of the channels of one connection.',
  ),
  REALTIME_MAX_MEMBERS: variable(
    integer(1, 10_000),
    '100',
    'Embedded realtime server: limit of the members of a presence channel.',
  ),
  REALTIME_MAX_MESSAGE_BYTES: variable(
    integer(1_024, 1_048_576),
    '32768',
    'Embedded realtime server: limit of one message of a client, in bytes.',
  ),
  REALTIME_MAX_EVENT_BYTES: variable(
    integer(10_240, 1_048_576),
    '10240',
    'Embedded realtime server: limit of the data of one event, in bytes.',
  ),
  REALTIME_MESSAGES_PER_SECOND: variable(
    integer(1, 100_000),
    '50',
    'Embedded realtime server: messages a second of one connection; six times as many may come at once.',
  ),
  REALTIME_CLIENT_EVENTS_PER_SECOND: variable(
    integer(0, 100_000),
    '10',
    'Embedded realtime server: client events a second of one connection. 0: none are taken.',
  ),
  REALTIME_AUTHORIZE_WITHIN_SECONDS: variable(
    integer(0, 3_600),
    '0: no limit',
    'Embedded realtime server: a connection that neither signs in nor joins a private channel in this time is closed.',
  ),
  REALTIME_BUS_SUBJECT: variable(
    busSubject,
    'none: PostgreSQL carries it',
    'Embedded realtime server: the subject below which its processes pass each other events by the servers of EVENT_LOG_URL. Installations that share servers have different ones.',
  ),
  REALTIME_ALLOWED_ORIGINS: variable(
    origins,
    'empty: all',
    'Embedded realtime server: origins whose pages may connect, comma-separated.',
  ),
} as const

import type { NatsAuth } from './nats/nats-connection.ts'
import type { NatsLogSettings } from './nats/nats-log.ts'
import type { NatsAddress } from './nats/nats-url.ts'

export interface EventLogValues {
  EVENT_LOG_URL: NatsAddress | undefined
  EVENT_LOG_CREDENTIALS: string | undefined
  EVENT_LOG_NKEY: string | undefined
  EVENT_LOG_TLS_CA: string | undefined
  EVENT_LOG_TLS_CERT: string | undefined
  EVENT_LOG_TLS_KEY: string | undefined
  EVENT_LOG_STREAM: string | undefined
  EVENT_LOG_REPLICAS: number | undefined
  EVENT_LOG_MAX_AGE_DAYS: number | undefined
  EVENT_LOG_MAX_BYTES: number | undefined
  EVENT_LOG_MONITOR_URLS: readonly string[] | undefined
}

export interface EventLogSettings extends NatsLogSettings {
  /** Monitoring URLs at which `signalbox doctor` reads the disk sync of the servers. */
  monitorUrls: readonly string[]
}

const DAY_MS = 24 * 3_600_000
const DEFAULT_STREAM = 'signalbox-events'
const DEFAULT_DAYS = 7

/** Reads the settings; undefined without `EVENT_LOG_URL`. Pure. */
export function readEventLogSettings(values: EventLogValues): EventLogSettings | undefined {
  const { EVENT_LOG_URL: address } = values
  if (!address) return undefined
  return {
    nats: {
      servers: address.servers,
      isTls: address.isTls,
      auth: decideAuth(values, address),
      tls: {
        caFile: values.EVENT_LOG_TLS_CA,
        certFile: values.EVENT_LOG_TLS_CERT,
        keyFile: values.EVENT_LOG_TLS_KEY,
      },
    },
    stream: values.EVENT_LOG_STREAM ?? DEFAULT_STREAM,
    replicas: values.EVENT_LOG_REPLICAS,
    maxAgeMs: (values.EVENT_LOG_MAX_AGE_DAYS ?? DEFAULT_DAYS) * DAY_MS,
    maxBytes: values.EVENT_LOG_MAX_BYTES,
    monitorUrls: values.EVENT_LOG_MONITOR_URLS ?? [],
  }
}

function decideAuth(values: EventLogValues, address: NatsAddress): NatsAuth {
  const { EVENT_LOG_CREDENTIALS: text, EVENT_LOG_NKEY: seed } = values
  if (text !== undefined) return { kind: 'credentials', text }
  return seed === undefined ? address.auth : { kind: 'nkey', seed }
}

/** Contradictions of the settings. Returns a sentence for each. Pure. */
export function findEventLogFaults(values: EventLogValues): string[] {
  const { EVENT_LOG_URL: address, EVENT_LOG_CREDENTIALS: credentials, EVENT_LOG_NKEY: nkey } = values
  const logins = [credentials, nkey, address?.auth.kind === 'none' ? undefined : address?.auth]
  const faults: string[] = []
  if (logins.filter((login) => login !== undefined).length > 1)
    faults.push(
      'EVENT_LOG_URL with a user, EVENT_LOG_CREDENTIALS and EVENT_LOG_NKEY exclude each other. Set one of them.',
    )
  if ((values.EVENT_LOG_TLS_CERT === undefined) !== (values.EVENT_LOG_TLS_KEY === undefined))
    faults.push('EVENT_LOG_TLS_CERT and EVENT_LOG_TLS_KEY belong together. Set both, or none.')
  return faults
}

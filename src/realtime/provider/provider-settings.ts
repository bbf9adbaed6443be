/** The application of a realtime provider, with the address of its server. */
export interface ProviderApp {
  appId: string
  /** Public: clients hold it too. */
  key: string
  secret: string
  cluster: string
  /** The origin of its HTTP API, such as `https://api-eu.pusher.com`. */
  origin: string
  /** Server that a client connects to. */
  socket: { host: string; port: number; isTls: boolean }
}

/** The keys of the embedded server; undefined when the service makes its own. */
export type EmbeddedKeys = Pick<ProviderApp, 'appId' | 'key' | 'secret'>

/** A provider, the embedded server, or log-only mode (docs/contract/realtime.md#provider-settings). */
export type RealtimeSettings =
  | { kind: 'provider'; app: ProviderApp }
  | { kind: 'embedded'; keys: EmbeddedKeys | undefined }
  | { kind: 'log-only'; missing: string[] }

export interface GivenSettings {
  appId: string | undefined
  key: string | undefined
  secret: string | undefined
  cluster: string | undefined
  useTls: boolean
  host: string | undefined
  port: number | undefined
  /** Whether the embedded server runs when none of the four required settings is given. */
  runsEmbedded: boolean
}

/** The four required settings, by the name of their variable. */
const REQUIRED = {
  INTEGRATION_REALTIME_APP_ID: 'appId',
  INTEGRATION_REALTIME_KEY: 'key',
  INTEGRATION_REALTIME_SECRET: 'secret',
  INTEGRATION_REALTIME_CLUSTER: 'cluster',
} as const

/** The cluster name of the embedded server. */
export const EMBEDDED_CLUSTER = 'embedded'

/** Evaluates the settings. A blank setting counts as missing. Pure. */
export function decideRealtimeSettings(given: GivenSettings): RealtimeSettings {
  const names = Object.keys(REQUIRED) as (keyof typeof REQUIRED)[]
  const readValue = (name: keyof typeof REQUIRED) => given[REQUIRED[name]]?.trim() ?? ''
  const missing = names.filter((name) => readValue(name) === '')
  if (missing.length === names.length && given.runsEmbedded) return { kind: 'embedded', keys: undefined }
  if (missing.length > 0) return { kind: 'log-only', missing }
  const [appId, key, secret, cluster] = names.map(readValue) as [string, string, string, string]
  if (cluster === EMBEDDED_CLUSTER) return { kind: 'embedded', keys: { appId, key, secret } }
  const { useTls, host } = given
  const port = given.port ?? (useTls ? 443 : 80)
  return {
    kind: 'provider',
    app: {
      ...{ appId, key, secret, cluster },
      origin: new URL(`${useTls ? 'https' : 'http'}://${host ?? `api-${cluster}.pusher.com`}:${port}`).origin,
      socket: { host: host ?? `ws-${cluster}.pusher.com`, port, isTls: useTls },
    },
  }
}

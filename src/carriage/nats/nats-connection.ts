import type { Authenticator, NatsConnection } from '@nats-io/transport-node'
import { systemClock } from '../../base/clock.ts'

/** Connection to the NATS servers. Secrets are only in `auth`, and never in a message of this module. */
export interface NatsSettings {
  /** `host:port` of each server. */
  servers: readonly string[]
  /** Whether only TLS is accepted. TLS is used in any case if the server requires it. */
  isTls: boolean
  auth: NatsAuth
  /** Paths of PEM files: the authority of the servers' certificates, and the certificate and key of this client. */
  tls: { caFile?: string | undefined; certFile?: string | undefined; keyFile?: string | undefined }
}

export type NatsAuth =
  | { kind: 'none' }
  | { kind: 'password'; user: string; password: string }
  | { kind: 'token'; token: string }
  /** The seed of an nkey: `SU...`. */
  | { kind: 'nkey'; seed: string }
  /** The text of a credentials file: a JWT and its seed. */
  | { kind: 'credentials'; text: string }

export interface NatsLink {
  connection: NatsConnection
  isConnected(): boolean
  countReconnects(): number
  /** Sends the messages already published, and closes it. Never throws. */
  close(): Promise<void>
}

export interface NatsLinkOptions {
  /** Shown in the lists of the servers. */
  name: string
  /** Called when the connection is lost, and when it is restored. */
  onStatus?: (status: 'disconnected' | 'connected') => void
  /** Runs for an error that a server sends outside of an answer: a missing permission. */
  onError?: (error: Error) => void
  /** Limit of a first connection; without it, of one server. */
  timeoutMs?: number
}

/** Pause before the next server is tried, and time without an answer after which a connection counts as lost. */
const RECONNECT_PAUSE_MS = 250
const PING_MS = 2_000
const PINGS_UNANSWERED = 2
const CONNECT_LIMIT_MS = 5_000
const DRAIN_LIMIT_MS = 1_000

/**
 * Connects. The packages are loaded here, so that a service without NATS loads none of them. Throws when no server can
 * be reached or all refuse; later losses are repaired, also when a server refuses the client for a while.
 */
export async function connectNats(settings: NatsSettings, options: NatsLinkOptions): Promise<NatsLink> {
  const transport = await import('@nats-io/transport-node')
  const { servers, isTls, tls } = settings
  const usesTls = isTls || Object.values(tls).some((path) => path !== undefined)
  const authenticator = buildAuthenticator(transport, settings.auth)
  const connection = await transport.connect({
    servers: [...servers],
    name: options.name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_PAUSE_MS,
    pingInterval: PING_MS,
    maxPingOut: PINGS_UNANSWERED,
    timeout: options.timeoutMs ?? CONNECT_LIMIT_MS,
    ignoreAuthErrorAbort: true,
    ...(authenticator && { authenticator }),
    ...(usesTls && { tls: dropUnset(tls) }),
  })
  let isConnected = true
  let reconnects = 0
  void (async () => {
    for await (const status of connection.status()) {
      const { type } = status
      if (type === 'error') options.onError?.(status.error)
      else if (type === 'disconnect' && isConnected) {
        isConnected = false
        options.onStatus?.('disconnected')
      } else if (type === 'reconnect') {
        isConnected = true
        reconnects += 1
        options.onStatus?.('connected')
      }
    }
  })()
  return {
    connection,
    isConnected: () => isConnected && !connection.isClosed(),
    countReconnects: () => reconnects,
    // A drain waits for the server, which may be away or hang.
    close: async () => {
      const limit = new AbortController()
      const drained = isConnected ? connection.drain().catch(() => {}) : undefined
      await Promise.race([drained, systemClock.sleep(DRAIN_LIMIT_MS, limit.signal)])
      limit.abort()
      await connection.close().catch(() => {})
    },
  }
}

function buildAuthenticator(
  transport: typeof import('@nats-io/transport-node'),
  auth: NatsAuth,
): Authenticator | undefined {
  const bytes = (text: string) => new TextEncoder().encode(text)
  switch (auth.kind) {
    case 'none':
      return undefined
    case 'password':
      return transport.usernamePasswordAuthenticator(auth.user, auth.password)
    case 'token':
      return transport.tokenAuthenticator(auth.token)
    case 'nkey':
      return transport.nkeyAuthenticator(bytes(auth.seed))
    case 'credentials':
      return transport.credsAuthenticator(bytes(auth.text))
  }
}

function dropUnset(paths: NatsSettings['tls']): { caFile?: string; certFile?: string; keyFile?: string } {
  return Object.fromEntries(Object.entries(paths).filter(([, path]) => path !== undefined))
}

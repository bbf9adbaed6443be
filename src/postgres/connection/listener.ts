import type pg from 'pg'
import { type Clock, systemClock } from '../../base/clock.ts'
import { CONNECT_BOUND_MS, connectClient } from './connect-limit.ts'
import { HostClient } from './host-client.ts'
import { type ClientInternals, SERVER_KEEP_ALIVE } from './pool-client.ts'

const RECONNECT_MS = 250

/** Timeout of a statement on this connection; none reads a table. */
const QUERY_LIMIT_MS = 5_000

/** Idle time before TCP keep-alive probes. */
const KEEP_ALIVE_MS = 10_000

/** Interval of liveness queries: a middlebox may acknowledge on a lost connection. Milliseconds. */
const PROBE_EVERY_MS = 1_000

const CLOSE_LIMIT_MS = 500

/** A dedicated LISTEN connection that reconnects. */
export interface Listener {
  run(): Promise<void>
  /** Replaces this connection, which fails to deliver notifications. */
  reconnect(): void
  stop(): Promise<void>
}

/** Options and callbacks of a listener. */
export interface ListenerOptions {
  /** PostgreSQL itself, or a pooler in session mode, because LISTEN belongs to a session. */
  connectionString: string
  applicationName: string
  clock: Clock
  channels: readonly string[]
  /** Name of an advisory lock, held shared while the connection is open. */
  lock?: string
  onNotification: (channel: string, payload: string) => void
  /** Runs when LISTEN is in effect, after the start and after each reconnect; earlier notifications were missed. */
  onListening: () => void
  /** Called when the connection has ended, or was abandoned because it did not answer. */
  onLost: () => void
  onError: (error: unknown) => void
}

/** Builds a listener. It connects in `run`. */
export function buildListener(options: ListenerOptions): Listener {
  const { clock, channels } = options
  const stopping = new AbortController()
  const stopped = Promise.withResolvers<false>()
  let client: pg.Client | undefined
  let breakCurrent: (() => void) | undefined

  async function connect(opened: pg.Client): Promise<true> {
    await connectClient(opened)
    await opened.query(channels.map((channel) => `listen "${channel}"`).join(';'))
    if (options.lock !== undefined)
      await opened.query('select pg_advisory_lock_shared(hashtextextended($1, 0))', [options.lock])
    return true
  }

  /** Queries until the signal. Rejects without an answer. */
  async function probe(opened: pg.Client, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(PROBE_EVERY_MS, signal)
      if (!signal.aborted) await opened.query('select 1')
    }
  }

  async function listen(): Promise<void> {
    const broken = Promise.withResolvers<void>()
    const opened = openClient(options.connectionString, options.applicationName)
    client = opened
    client.on('notification', ({ channel, payload }) => options.onNotification(channel, payload ?? ''))
    client.on('error', () => broken.resolve())
    client.on('end', () => broken.resolve())
    breakCurrent = () => broken.resolve()
    const ending = new AbortController()
    try {
      // pg settles neither `connect` nor a statement that `end` interrupts, so a stop does not wait for them.
      const isListening = await Promise.race([connect(opened), stopped.promise])
      if (!isListening) return
      options.onListening()
      void probe(opened, ending.signal).catch((error: unknown) => {
        if (!ending.signal.aborted) options.onError(error)
        broken.resolve()
      })
      await broken.promise
    } finally {
      ending.abort('over')
      breakCurrent = undefined
      options.onLost()
      // Also after a failed LISTEN: the next round opens a new connection.
      endClient(opened)
    }
  }

  return {
    reconnect: () => breakCurrent?.(),
    run: async () => {
      while (!stopping.signal.aborted) {
        await listen().catch((error: unknown) => {
          if (!stopping.signal.aborted) options.onError(error)
        })
        if (!stopping.signal.aborted) await clock.sleep(RECONNECT_MS, stopping.signal)
      }
    },
    stop: async () => {
      stopping.abort()
      stopped.resolve(false)
      if (client) await closeClient(client, clock)
    },
  }
}

/**
 * A connection outside the pool, to be opened by `connectClient`, with settings of the server's command line syntax (`-c name=value`). Its `error` event
 * is handled, so that a lost connection never ends the process. Statements may overlap: notifications of work and
 * proofs are sent concurrently.
 */
export function openClient(connectionString: string, applicationName: string, settings = ''): pg.Client {
  const client = new HostClient({
    connectionString,
    options: `${SERVER_KEEP_ALIVE} ${settings}`.trim(),
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_BOUND_MS,
    query_timeout: QUERY_LIMIT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    pipeline: true,
  })
  client.on('error', () => {})
  return client
}

/** Closes a connection whether or not its peer answers: a half-open one would stay. */
export function endClient(client: pg.Client): void {
  const { connection } = client as unknown as ClientInternals
  const ended = client.end().catch(() => {})
  void Promise.race([ended, systemClock.sleep(CLOSE_LIMIT_MS)]).then(() => connection.stream.destroy())
}

/** Closes a connection; abandons it after the timeout. */
export async function closeClient(client: pg.Client, clock: Clock): Promise<void> {
  await Promise.race([client.end().catch(() => {}), clock.sleep(CLOSE_LIMIT_MS)])
}

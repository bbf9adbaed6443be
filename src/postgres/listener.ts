import pg from 'pg'
import type { Clock } from '../clock.ts'

/** How long to wait before listening again after the connection broke. */
const RECONNECT_MS = 250

/** How long a connection may take to come about. */
const CONNECT_LIMIT_MS = 5_000

/** How long a statement may take on such a connection; none of them reads a table. */
const QUERY_LIMIT_MS = 5_000

/** A silent connection is probed by TCP after this long. */
const KEEP_ALIVE_MS = 10_000

/** Timeout for closing the connection. */
const CLOSE_LIMIT_MS = 500

/** A connection of its own that LISTENs, and reconnects by itself. */
export interface Listener {
  /** Listens until stopped. */
  run(): Promise<void>
  stop(): Promise<void>
}

/** What a listener reports. */
export interface ListenerOptions {
  /** Must lead to PostgreSQL itself, or to a pooler in session mode: LISTEN is of one session. */
  connectionString: string
  applicationName: string
  clock: Clock
  channels: readonly string[]
  /** Name of an advisory lock that is held, shared, for as long as the connection lives. */
  lock?: string
  onNotification: (channel: string, payload: string) => void
  /** Runs when LISTEN is in effect, after the start and after each reconnect: what came in between was missed. */
  onListening: () => void
  /** Runs when the connection has ended. */
  onLost: () => void
  onError: (error: unknown) => void
}

/** Builds a listener. Nothing is connected before `run`. */
export function buildListener(options: ListenerOptions): Listener {
  const { clock, channels } = options
  const stopping = new AbortController()
  const stopped = Promise.withResolvers<false>()
  let client: pg.Client | undefined

  async function connect(opened: pg.Client): Promise<true> {
    await opened.connect()
    await opened.query(channels.map((channel) => `listen "${channel}"`).join(';'))
    if (options.lock !== undefined)
      await opened.query('select pg_advisory_lock_shared(hashtextextended($1, 0))', [options.lock])
    return true
  }

  async function listen(): Promise<void> {
    const broken = Promise.withResolvers<void>()
    const opened = openClient(options.connectionString, options.applicationName)
    client = opened
    client.on('notification', ({ channel, payload }) => options.onNotification(channel, payload ?? ''))
    client.on('error', () => broken.resolve())
    client.on('end', () => broken.resolve())
    try {
      // pg settles neither `connect` nor a statement that `end` interrupts, so a stop does not wait for them.
      const isListening = await Promise.race([connect(opened), stopped.promise])
      if (!isListening) return
      options.onListening()
      await broken.promise
    } finally {
      options.onLost()
      // Also after a refused LISTEN: the next round opens a connection of its own.
      void client.end().catch(() => {})
    }
  }

  return {
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
 * A connection outside the pool, with settings of the server's command line syntax (`-c name=value`). Its `error` event is
 * handled, so that a lost connection never ends the process.
 */
export function openClient(connectionString: string, applicationName: string, settings = ''): pg.Client {
  const client = new pg.Client({
    connectionString,
    ...(settings && { options: settings }),
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    query_timeout: QUERY_LIMIT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  })
  client.on('error', () => {})
  return client
}

/** Closes a connection; one that hangs is left to the operating system. */
export async function closeClient(client: pg.Client, clock: Clock): Promise<void> {
  await Promise.race([client.end().catch(() => {}), clock.sleep(CLOSE_LIMIT_MS)])
}

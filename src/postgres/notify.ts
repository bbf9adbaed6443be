import pg from 'pg'
import type { Clock } from '../clock.ts'

/** The channel on which processes tell each other that there is work. */
const CHANNEL = 'signalbox_work'

/** Announcements within this time become one. A NOTIFY takes a lock of the whole database at its commit, so it is kept out of the transactions of changes and is sent seldom. */
const COALESCE_MS = 20

/** How long to wait before listening again after the connection broke. */
const RECONNECT_MS = 1_000

/** How long a connection may take to come about. */
const CONNECT_LIMIT_MS = 5_000

/** A silent connection is asked for a sign of life after this long. */
const KEEP_ALIVE_MS = 10_000

/** How long a goodbye to the database may take at the stop: one that hangs must not hold up the rest. */
const GOODBYE_MS = 500

/** Tells every process of the database that there is work, and is told. Only a hint: whoever works also polls. */
export interface Notifier {
  /** Wakes the workers of this process now and those of others within milliseconds. Never throws. */
  notify(): void
  /** Listens until stopped; reconnects by itself. */
  run(): Promise<void>
  stop(): Promise<void>
}

/** Builds a `Notifier`. `onWork` runs when this or another process announced work, and after each reconnect. */
export function buildNotifier(options: {
  connectionString: string
  pool: pg.Pool
  clock: Clock
  /** Whether this process works on events, and so wants to hear of them. */
  isListening: boolean
  onWork: () => void
  onError: (error: unknown) => void
}): Notifier {
  const { pool, clock, onWork, onError } = options
  const stopping = new AbortController()
  let announcing: Promise<void> | undefined
  let client: pg.Client | undefined

  async function send(): Promise<void> {
    await clock.sleep(COALESCE_MS, stopping.signal)
    announcing = undefined
    if (stopping.signal.aborted) return
    await pool.query(`notify ${CHANNEL}`).catch(onError)
  }

  async function listen(): Promise<void> {
    const broken = Promise.withResolvers<void>()
    client = new pg.Client({
      connectionString: options.connectionString,
      application_name: 'signalbox notify',
      connectionTimeoutMillis: CONNECT_LIMIT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    })
    client.on('notification', onWork)
    client.on('error', () => broken.resolve())
    client.on('end', () => broken.resolve())
    try {
      await client.connect()
      await client.query(`listen ${CHANNEL}`)
      onWork()
      await broken.promise
    } finally {
      // Also after a refused LISTEN: the next round opens a connection of its own.
      void client.end().catch(() => {})
    }
  }

  return {
    notify: () => {
      onWork()
      announcing ??= send()
    },
    run: async () => {
      while (options.isListening && !stopping.signal.aborted) {
        await listen().catch((error: unknown) => {
          if (!stopping.signal.aborted) onError(error)
        })
        if (!stopping.signal.aborted) await clock.sleep(RECONNECT_MS, stopping.signal)
      }
    },
    stop: async () => {
      stopping.abort()
      const goodbye = client?.end().catch(() => {})
      await Promise.race([Promise.all([goodbye, announcing]), clock.sleep(GOODBYE_MS)])
    },
  }
}

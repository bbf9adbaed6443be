import type pg from 'pg'
import { systemClock } from '../../base/clock.ts'
import { connectClient } from '../connection/connect-limit.ts'
import { HostClient } from '../connection/host-client.ts'
import { endClient, openClient } from '../connection/listener.ts'
import { type ClientInternals, endSilent, SERVER_KEEP_ALIVE } from '../connection/pool-client.ts'

/** Silence after which the connection of a migration is checked. */
const SILENCE_MS = 10_000

/** Idle time before TCP keep-alive probes. */
const KEEP_ALIVE_MS = 10_000

/** Number of consecutive checks without a server after which the connection counts as dead. */
const LOST_LOOKS = 6

/** Server timeout of a migration, with its locks, whose process is silent. */
const IDLE_IN_TRANSACTION_MS = 60_000

/** A connection for migrations. */
export interface MigrationClient {
  client: pg.Client
  end(): Promise<void>
}

/**
 * Connects for migrations. A statement may take hours, so silence alone means nothing: a second connection asks the
 * server whether the statement is running; if not, the connection is dead and its statement fails.
 */
export async function openMigrationClient(
  connectionString: string,
  options: { silenceMs?: number } = {},
): Promise<MigrationClient> {
  const client = new HostClient({
    connectionString,
    application_name: 'signalbox migrate',
    connectionTimeoutMillis: 5000,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    options: SERVER_KEEP_ALIVE,
  })
  // pg reports a broken connection through the failing query; an unhandled error event would end the process.
  client.on('error', () => {})
  await client.connect()
  const ended = new AbortController()
  void watch(client, connectionString, { silenceMs: options.silenceMs ?? SILENCE_MS, signal: ended.signal })
  return {
    client,
    end: async () => {
      ended.abort('over')
      await client.end()
    },
  }
}

async function watch(
  client: pg.Client,
  connectionString: string,
  { silenceMs, signal }: { silenceMs: number; signal: AbortSignal },
): Promise<void> {
  const socket = (client as unknown as ClientInternals).connection.stream
  let heard = -1
  let lost = 0
  while (!signal.aborted && !socket.destroyed) {
    await systemClock.sleep(silenceMs, signal)
    if (signal.aborted) return
    const isSilent = socket.bytesRead === heard
    heard = socket.bytesRead
    if (!isSilent) continue
    const isWorking = await isBackendWorking(client, connectionString)
    lost = isWorking === undefined ? lost + 1 : 0
    if (socket.bytesRead === heard && (isWorking === false || lost >= LOST_LOOKS)) return endSilent(socket)
  }
}

/** Whether the server process of a connection works on a statement; undefined when the server cannot be reached. */
async function isBackendWorking(client: pg.Client, connectionString: string): Promise<boolean | undefined> {
  const asking = openClient(connectionString, 'signalbox migrate')
  try {
    await connectClient(asking)
    const { processID } = client as unknown as { processID: number }
    const { rows } = await asking.query('select state from pg_stat_activity where pid = $1', [processID])
    return rows[0]?.state === 'active'
  } catch {
    return undefined
  } finally {
    endClient(asking)
  }
}

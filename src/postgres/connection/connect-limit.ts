import type pg from 'pg'
import { systemClock } from '../../base/clock.ts'

/** Steps of the limit. A stall of this process lengthens the step in which it occurs, and no other. */
const STEPS = 20

/** Timeout for connecting, without the stalls of this process. */
const CONNECT_LIMIT_MS = 5_000

/** Timeout of the driver, whatever this process did. */
export const CONNECT_BOUND_MS = 2 * CONNECT_LIMIT_MS

/** The connection of a client; the driver's types leave it out. */
interface ClientParts {
  connection: { _ending: boolean; stream: { destroy(error: Error): void } }
}

/**
 * Connects within 5 s in which this process ran; the driver ends it after twice the time (`CONNECT_BOUND_MS`). By the
 * driver's limit alone a process that is slow or stood still would end a connection whose server has answered: its
 * timer runs before the socket is read. Rejects with the error of the driver.
 */
export async function connectClient(client: pg.Client): Promise<void> {
  const over = new AbortController()
  void endLate(client, over.signal)
  try {
    await client.connect()
  } finally {
    over.abort('over')
  }
}

async function endLate(client: pg.Client, over: AbortSignal): Promise<void> {
  for (let step = 0; step < STEPS && !over.aborted; step += 1) await systemClock.sleep(CONNECT_LIMIT_MS / STEPS, over)
  // After the next read of the sockets.
  await new Promise(setImmediate)
  if (over.aborted) return
  const { connection } = client as unknown as ClientParts
  // As the driver does: a reset of a socket that ends is no error.
  connection._ending = true
  connection.stream.destroy(new Error('timeout expired'))
}

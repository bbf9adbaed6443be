import { createServer } from 'node:net'

/**
 * First port of the range that tests assign to programs. It lies below the ephemeral ports (Linux from 32768, others from
 * 49152), so that no connection or server of another test takes a port between the search and its use.
 */
const FIRST_PORT = 12_000
const PORTS_OF_PROCESS = 100
const PROCESSES = 200

const ownPorts = FIRST_PORT + (process.pid % PROCESSES) * PORTS_OF_PROCESS
let taken = 0

/** A port of loopback that nothing listens on, which this process has not given out for the longest time. */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < PORTS_OF_PROCESS; tries += 1) {
    const port = ownPorts + (taken++ % PORTS_OF_PROCESS)
    if (port !== kept && (await isFree(port))) return port
  }
  throw new Error(`none of the ports from ${ownPorts} to ${ownPorts + PORTS_OF_PROCESS - 1} is free`)
}

let kept: number | undefined

/**
 * The port of the service that the browser of this process visits: the same for each test file while it is free, so that the
 * browser has the scripts of its pages already.
 */
export async function findKeptPort(): Promise<number> {
  if (kept === undefined || !(await isFree(kept))) kept = await findFreePort()
  return kept
}

/** Whether this process can listen on a port of loopback. */
export function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const { promise, resolve } = Promise.withResolvers<boolean>()
  server.once('error', () => resolve(false))
  server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  return promise
}

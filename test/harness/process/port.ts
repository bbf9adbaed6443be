import { createServer, type Server } from 'node:net'

/**
 * First port of the range that tests assign to programs. It lies below the ephemeral ports (Linux from 32768, others from
 * 49152), so that no connection or server of another test takes a port between the search and its use.
 */
const FIRST_PORT = 12_000
const PORTS_OF_PROCESS = 100
const PROCESSES = 200

/** A hundred ports that one process alone gives out. */
interface Claim {
  /** The first of them, which is the claim itself: the process listens on it. */
  first: number
  release(): Promise<void>
}

let claimed: Promise<Claim> | undefined
let taken = 0

/** A port of loopback that nothing listens on, which this process has not given out for the longest time. */
export async function findFreePort(): Promise<number> {
  claimed ??= claimPorts(process.pid)
  const { first } = await claimed
  for (let tries = 1; tries < PORTS_OF_PROCESS; tries += 1) {
    const port = first + 1 + (taken++ % (PORTS_OF_PROCESS - 1))
    if (port !== kept && (await isFree(port))) return port
  }
  throw new Error(`none of the ports from ${first + 1} to ${first + PORTS_OF_PROCESS - 1} is free`)
}

/**
 * Claims ports for this process until it ends, from the hundred of this number on. Processes of this run or of one beside it
 * that shared them would find the same one free, before the program of either listens on it.
 */
export async function claimPorts(number: number): Promise<Claim> {
  for (let tries = 0; tries < PROCESSES; tries += 1) {
    const first = FIRST_PORT + ((number + tries) % PROCESSES) * PORTS_OF_PROCESS
    const server = await listen(first)
    if (!server) continue
    // A process of tests does not wait for its claim to end.
    server.unref()
    return { first, release: () => close(server) }
  }
  throw new Error(`each of the ${PROCESSES} hundreds of ports from ${FIRST_PORT} on is claimed`)
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
export async function isFree(port: number): Promise<boolean> {
  const server = await listen(port)
  if (server) await close(server)
  return server !== undefined
}

/** Listens on a port of loopback, and ends every connection to it. Undefined when it is taken. */
function listen(port: number): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy())
  const { promise, resolve } = Promise.withResolvers<Server | undefined>()
  server.once('error', () => resolve(undefined))
  server.listen({ port, host: '127.0.0.1', exclusive: true }, () => resolve(server))
  return promise
}

const close = (server: Server) => new Promise<void>((resolve) => server.close(() => resolve()))

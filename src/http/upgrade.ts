import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/** Takes over a connection that asks for another protocol (RFC 9110 section 7.8). `head` is what came behind the request. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** Where connections that ask for an upgrade are handed to. */
export interface UpgradeRouter {
  /** Hands upgrades below `prefix` (whole path segments) to `handler`. Throws for a prefix that is taken. */
  mount(prefix: string, handler: UpgradeHandler): void
  /** Whether some handler takes an upgrade of this URL. Any other request is served as if it did not ask for one. */
  takes(url: string | undefined): boolean
  /** Hands a connection over. The router ends it with its peer and at `close`. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Ends every connection that was handed over: Node counts them no more, and would wait for them for ever. */
  close(): void
}

/** Builds the router of upgrades by path. */
export function buildUpgradeRouter(): UpgradeRouter {
  const handlers = new Map<string, UpgradeHandler>()
  const sockets = new Set<Duplex>()

  /** The handler of the longest prefix of the path, by whole segments. */
  function find(url: string | undefined): UpgradeHandler | undefined {
    const path = url?.split('?', 1)[0] ?? '/'
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
      const handler = handlers.get(path.slice(0, end))
      if (handler) return handler
    }
    return undefined
  }

  return {
    mount: (prefix, handler) => {
      if (handlers.has(prefix)) throw new Error(`upgrades below ${prefix} are mounted already`)
      handlers.set(prefix, handler)
    },
    takes: (url) => find(url) !== undefined,
    upgrade: (request, socket, head) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      // A client that disconnects in the middle is no fault of the process; one that ends its half ends the connection.
      socket.on('error', () => socket.destroy())
      socket.on('end', () => socket.end())
      find(request.url)?.(request, socket, head)
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}

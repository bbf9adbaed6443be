import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { findTargetFault } from '../request/request-target.ts'

/** Serves an upgraded connection (RFC 9110 section 7.8). `head` holds the bytes after the request. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** Routes protocol upgrades to their handlers. */
export interface UpgradeRouter {
  /** Mounts `handler` below `prefix` (whole path segments). Throws for a prefix that is taken. */
  mount(prefix: string, handler: UpgradeHandler): void
  /** Whether a handler is mounted for this URL. Other requests are served as plain HTTP. */
  takes(url: string | undefined): boolean
  /** Passes a connection to its handler. The router ends it with its peer and at `close`. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Ends every upgraded connection: Node no longer tracks them, and closing the server would wait forever. */
  close(): void
}

/** Builds the router of upgrades by path. */
export function buildUpgradeRouter(): UpgradeRouter {
  /** The longest prefix first. */
  const handlers: { prefix: string; handler: UpgradeHandler }[] = []
  const sockets = new Set<Duplex>()

  /** The handler of the longest prefix of the path, by whole segments. Takes time linear in the path. */
  function find(url: string | undefined): UpgradeHandler | undefined {
    // Without a handler the request is refused as one that does not upgrade.
    if (url === undefined || findTargetFault(url) !== undefined) return undefined
    const path = url.split('?', 1)[0] ?? '/'
    return handlers.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`))?.handler
  }

  return {
    mount: (prefix, handler) => {
      if (handlers.some((handler) => handler.prefix === prefix))
        throw new Error(`an upgrade handler is already mounted below ${prefix}`)
      handlers.push({ prefix, handler })
      handlers.sort((a, b) => b.prefix.length - a.prefix.length)
    },
    takes: (url) => find(url) !== undefined,
    upgrade: (request, socket, head) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      // A client that disconnects is not an error; one that half-closes ends the connection.
      socket.on('error', () => socket.destroy())
      socket.on('end', () => socket.end())
      find(request.url)?.(request, socket, head)
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}

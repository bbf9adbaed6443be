import type { RealtimeCounts } from '../application/state.ts'
import type { AddressBook } from '../frame/address-book.ts'
import { type CloseName, classifyVersion } from '../frame/close-reason.ts'
import type { RealtimeLimits } from '../frame/limits.ts'

/** Decision on a request for a connection: opened, refused over HTTP, or opened and closed with a code. */
export type HandshakeVerdict = { key: string } | { status: 429 | 503 } | { close: CloseName }

export interface HandshakeFacts {
  /** Path and query. */
  url: string
  /** The `Origin` header, which browsers send. */
  origin: string | undefined
  address: string
  isKnownKey: (key: string) => boolean
  /** Origins that may connect; undefined: all. */
  allowedOrigins: readonly string[] | undefined
  /** Whether the server accepts connections: not before it has joined the others, nor while it stops. */
  isServing: boolean
  limits: RealtimeLimits
  counts: Pick<RealtimeCounts, 'connections'>
  addresses: AddressBook
  nowMs: number
}

/** Decides on a handshake: a browser sees codes of closes alone; refusals that protect the server cost no WebSocket. */
export function decideHandshake(facts: HandshakeFacts): HandshakeVerdict {
  const { limits, addresses, address } = facts
  if (!facts.isServing) return { status: 503 }
  if (addresses.hit(address, facts.nowMs) > limits.newConnectionsPerAddress) return { status: 429 }
  const [path = '', query] = facts.url.split('?', 2)
  const key = /^\/app\/([^/]+)\/?$/.exec(path)?.[1]
  if (key === undefined) return { close: 'unknown-path' }
  const version = classifyVersion(new URLSearchParams(query).get('protocol'))
  if (version) return { close: version }
  if (!facts.isKnownKey(key)) return { close: 'unknown-app' }
  if (facts.allowedOrigins && facts.origin !== undefined && !facts.allowedOrigins.includes(facts.origin))
    return { close: 'foreign-origin' }
  if (addresses.countOpen(address) >= limits.connectionsPerAddress) return { close: 'address-quota' }
  return facts.counts.connections >= limits.connections ? { close: 'over-capacity' } : { key }
}

import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { isLoopback } from './client-address.ts'

/** Facts that distinguish a request of this machine from one through a proxy or of a foreign page. */
export interface RequestOrigin {
  /** The other end of the connection. */
  peer: string | undefined
  httpVersion: string
  headers: Readonly<Record<string, string | string[] | undefined>>
}

/** `localhost`, names below it (RFC 6761 section 6.3) and loopback addresses, with an optional port. */
const LOOPBACK_HOST = /^(?:(?:[a-z0-9-]{1,63}\.){0,8}localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?$/i

/** Headers that only a proxy adds, by name and by the prefixes of hosting providers' proxies. */
const PROXY_HEADERS = new Set(['forwarded', 'via', 'true-client-ip', 'client-ip', 'cdn-loop', 'x-real-ip'])
const PROXY_PREFIXES = [
  ...['x-forwarded', 'x-original-', 'x-client-', 'x-cluster-client-', 'x-proxy', 'x-host', 'x-real-'],
  ...['cf-', 'fastly-', 'fly-', 'tailscale-', 'akamai-', 'x-akamai-', 'x-amzn-', 'x-amz-cf-', 'x-arr-', 'x-azure-'],
  ...['x-appengine-', 'x-envoy-', 'x-nf-', 'x-vercel-', 'ngrok-', 'x-ms-'],
]

/** Whether a `Host` is a name or an address of the machine itself. */
export function isLoopbackHost(host: string | undefined): boolean {
  if (host === undefined || !LOOPBACK_HOST.test(host)) return false
  const [name = ''] = host.split(':', 1)
  return !name.startsWith('127.') || isIP(name) === 4
}

/**
 * The evidence that a request does not come from a user at this machine, as a noun for the log; undefined without any.
 * A loopback peer alone is not enough: a proxy on the same machine has that address too, and a foreign page reaches
 * loopback by DNS rebinding. Proxies that add no header use HTTP/1.0 by default. Pure.
 */
export function findForeignSign({ peer, httpVersion, headers }: RequestOrigin): string | undefined {
  const address = (peer ?? '').replace(/^::ffff:/i, '')
  if (isIP(address) === 0 || !isLoopback(address)) return 'peer'
  const { host } = headers
  if (!isLoopbackHost(typeof host === 'string' ? host : undefined)) return 'host'
  const proxied = Object.keys(headers).find(
    (name) => PROXY_HEADERS.has(name) || PROXY_PREFIXES.some((prefix) => name.startsWith(prefix)),
  )
  return proxied ?? (httpVersion === '1.0' ? 'http/1.0' : undefined)
}

/** The parts of a request that `findForeignSign` checks. */
export function readOrigin({ socket, httpVersion, headers }: IncomingMessage): RequestOrigin {
  return { peer: socket.remoteAddress, httpVersion, headers }
}

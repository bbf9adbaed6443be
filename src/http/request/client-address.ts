import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

/** The trusted proxies of `X-Forwarded-For`: none, a number of hops, or those of some networks. */
export type TrustProxy = false | { hops: number } | { networks: BlockList }

/** Upper bound on hops. Real deployments have fewer. */
const HOPS_LIMIT = 32

/** Names for networks of RFC 6890, RFC 1918 and RFC 4193. */
const NAMED_NETWORKS: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

const RULE = `must be false, the number of proxies in front of the service (1 to ${HOPS_LIMIT}), or a comma-separated list of their addresses and networks (10.0.0.0/8, fd00::/8, loopback, linklocal, uniquelocal)`

/** Reads `TRUST_PROXY`. Throws an Error whose message completes "TRUST_PROXY ...". */
export function parseTrustProxy(text: string): TrustProxy {
  if (text === 'false') return false
  if (text === 'true')
    throw new Error(
      'must not be true: any client can send X-Forwarded-For. Set the number of proxies in front of the service, such as 1, or their networks, such as 10.0.0.0/8',
    )
  if (/^\d{1,2}$/.test(text)) {
    const hops = Number(text)
    if (hops < 1 || hops > HOPS_LIMIT) throw new Error(RULE)
    return { hops }
  }
  const networks = new BlockList()
  for (const entry of text.split(',').map((part) => part.trim())) {
    for (const network of Object.hasOwn(NAMED_NETWORKS, entry) ? (NAMED_NETWORKS[entry] ?? []) : [entry])
      addNetwork(networks, network)
  }
  return { networks }
}

/** Adds an address or a CIDR network. Refuses prefix 0, which contains every address: any header would be trusted. */
function addNetwork(networks: BlockList, text: string): void {
  const [address = '', prefix, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0 || address.includes('%')) throw new Error(RULE)
  const type = version === 4 ? 'ipv4' : 'ipv6'
  const widest = version === 4 ? 32 : 128
  const bits = prefix === undefined ? widest : /^\d{1,3}$/.test(prefix) ? Number(prefix) : 0
  if (bits < 1 || bits > widest) throw new Error(RULE)
  networks.addSubnet(address, bits, type)
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** Whether an address of a client is this machine's own. */
export function isLoopback(address: string): boolean {
  return LOOPBACK.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

/** The client of a request. */
export interface ClientAddress {
  address: string
  /** An entry of `X-Forwarded-For` that is not an IP address: it and the entries to its left were ignored. */
  ignored: string | undefined
}

/**
 * Finds the address of the client: the rightmost entry of `X-Forwarded-For`, with the peer of the connection appended,
 * that is not a trusted proxy; if all are trusted, the leftmost. Each proxy appends the address of its peer, so the search
 * never reads an entry that an untrusted party wrote. An entry that is not an IP address ends the search, and the proxy
 * that wrote it counts as the client.
 */
export function findClientAddress(input: {
  /** The other end of the connection. */
  peer: string
  /** The header; several headers are joined by commas. */
  forwardedFor: string | undefined
  trust: TrustProxy
}): ClientAddress {
  const { peer, forwardedFor, trust } = input
  let address = toPlainAddress(peer)
  if (trust === false || forwardedFor === undefined) return { address, ignored: undefined }
  // RFC 9110 section 5.6.1: a recipient ignores empty list elements.
  const entries = forwardedFor
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
  for (let hop = 0; hop < entries.length && isTrusted(address, hop, trust); hop += 1) {
    const entry = entries[entries.length - 1 - hop] ?? ''
    const next = parseForwardedAddress(entry)
    if (next === undefined) return { address, ignored: entry }
    address = next
  }
  return { address, ignored: undefined }
}

/** Whether the peer of a connection is a trusted proxy, whose connections are those of many clients. */
export function isTrustedPeer(peer: string, trust: TrustProxy): boolean {
  return trust !== false && isTrusted(toPlainAddress(peer), 0, trust)
}

function isTrusted(address: string, hop: number, trust: Exclude<TrustProxy, false>): boolean {
  if ('hops' in trust) return hop < trust.hops
  return isIP(address) !== 0 && trust.networks.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
}

/** Parses an entry: an address, or one with a port as some proxies write it (`192.0.2.1:4711`, `[2001:db8::1]:4711`). */
function parseForwardedAddress(entry: string): string | undefined {
  if (isIP(entry) !== 0) return toPlainAddress(entry)
  const [, bracketed, dotted] = /^(?:\[([^\]]{2,64})\](?::\d{1,5})?|([\d.]{7,15}):\d{1,5})$/.exec(entry) ?? []
  if (bracketed !== undefined) return isIPv6(bracketed) ? toPlainAddress(bracketed) : undefined
  return dotted !== undefined && isIPv4(dotted) ? dotted : undefined
}

/** Removes the zone of a link-local address and unmaps an IPv4-mapped IPv6 address. */
function toPlainAddress(address: string): string {
  const [unzoned = ''] = address.split('%', 1)
  const [, mapped = ''] = /^::ffff:([\d.]+)$/i.exec(unzoned) ?? []
  return isIPv4(mapped) ? mapped : unzoned
}

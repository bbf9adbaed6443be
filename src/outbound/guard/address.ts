/**
 * Classifies the addresses that the service may dial (docs/contract/webhooks.md#callback-guard), by integer arithmetic.
 * No library: `ipaddr.js` calls `::7f00:1` and `4000::1` unicast, and `net.BlockList` unmaps `::ffff:` but not the other
 * forms that embed an IPv4 address.
 *
 * IPv4 is public unless a special range contains it. IPv6 is forbidden unless it is in 2000::/3 and outside the special
 * ranges there. So every form that embeds an IPv4 address (mapped, compatible, SIIT, NAT64, ISATAP under ::/8; 6to4 and
 * Teredo inside 2000::/3) is refused as a block, and so are unassigned ranges.
 */
export interface Address {
  family: 4 | 6
  /** The address as an unsigned integer of 32 or 128 bits. */
  value: bigint
}

export interface AddressRange extends Address {
  /** Prefix length: 0 to 32 or 128. */
  prefix: number
}

/**
 * IPv4 ranges without public hosts: the IANA special-purpose registry (RFC 6890 and later), multicast, class E, the AS112
 * and AMT anycast blocks, and Azure's platform address, a metadata service under a public address.
 */
const FORBIDDEN_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
].map(readRange)

/** The IPv6 space that IANA assigns as global unicast (RFC 4291). */
const GLOBAL_IPV6 = readRange('2000::/3')

/** Special blocks inside 2000::/3: protocol assignments with Teredo and ORCHID, documentation, 6to4, AS112, the returned 6bone. */
const FORBIDDEN_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3ffe::/16', '3fff::/20'].map(
  readRange,
)

/** Whether the service may dial `text`. Anything that is not exactly an address is `forbidden`. */
export function classifyAddress(text: string): 'public' | 'forbidden' {
  const address = parseAddress(text)
  if (address === undefined) return 'forbidden'
  if (address.family === 4) return FORBIDDEN_IPV4.some((range) => isInRange(address, range)) ? 'forbidden' : 'public'
  if (!isInRange(address, GLOBAL_IPV6)) return 'forbidden'
  return FORBIDDEN_IPV6.some((range) => isInRange(address, range)) ? 'forbidden' : 'public'
}

/** Parses an IPv4 or IPv6 address, strictly; `undefined` for other text. No brackets, no zone. */
export function parseAddress(text: string): Address | undefined {
  if (text.includes(':')) {
    const value = parseIpv6(text)
    return value === undefined ? undefined : { family: 6, value }
  }
  const value = parseIpv4(text)
  return value === undefined ? undefined : { family: 4, value: BigInt(value) }
}

/** Parses four decimal bytes with dots, without leading zeros, to an unsigned 32-bit number. */
export function parseIpv4(text: string): number | undefined {
  const parts = text.split('.')
  if (parts.length !== 4) return undefined
  let value = 0
  for (const part of parts) {
    if (!/^(?:0|[1-9][0-9]{0,2})$/.test(part)) return undefined
    const byte = Number(part)
    if (byte > 255) return undefined
    value = value * 256 + byte
  }
  return value
}

/** Parses an IPv6 address of RFC 4291 section 2.2 (with `::` and a dotted tail), without a zone, to an unsigned 128-bit integer. */
export function parseIpv6(text: string): bigint | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const tail = halves.length === 2 ? halves[1]! : ''
  const head = readGroups(halves[0]!, halves.length === 1)
  const rest = readGroups(tail, true)
  if (head === undefined || rest === undefined) return undefined
  const missing = 8 - head.length - rest.length
  // A `::` stands for at least one group; without it all eight are required.
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined
  const groups = [...head, ...new Array<number>(missing).fill(0), ...rest]
  return groups.reduce((value, group) => (value << 16n) | BigInt(group), 0n)
}

/** Parses 16-bit groups; a dotted quad may be last when `isEnd`. The empty text has no groups. */
function readGroups(text: string, isEnd: boolean): number[] | undefined {
  if (text === '') return []
  const parts = text.split(':')
  const groups: number[] = []
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(Number.parseInt(part, 16))
      continue
    }
    const quad = isEnd && index === parts.length - 1 ? parseIpv4(part) : undefined
    if (quad === undefined) return undefined
    groups.push(Math.floor(quad / 65536), quad % 65536)
  }
  return groups
}

/** Whether the range contains the address. Families differ: `::ffff:10.0.0.1` is not in `10.0.0.0/8`. */
export function isInRange(address: Address, range: AddressRange): boolean {
  if (address.family !== range.family) return false
  const shift = BigInt((range.family === 4 ? 32 : 128) - range.prefix)
  return address.value >> shift === range.value >> shift
}

/** Parses `address/prefix`, or one address. `undefined` for another form, or bits behind the prefix (`10.0.0.5/8`). */
export function parseRange(text: string): AddressRange | undefined {
  const [left, right, ...more] = text.split('/')
  if (more.length > 0) return undefined
  const address = parseAddress(left!)
  if (address === undefined) return undefined
  const width = address.family === 4 ? 32 : 128
  if (right === undefined) return { ...address, prefix: width }
  if (!/^(?:0|[1-9][0-9]{0,2})$/.test(right) || Number(right) > width) return undefined
  const prefix = Number(right)
  const hostBits = BigInt(width - prefix)
  if ((address.value >> hostBits) << hostBits !== address.value) return undefined
  return { ...address, prefix }
}

function readRange(text: string): AddressRange {
  const range = parseRange(text)
  if (range === undefined) throw new Error(`not an address range: ${text}`)
  return range
}

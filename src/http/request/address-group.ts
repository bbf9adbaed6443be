import { isIPv6 } from 'node:net'

/** The group of an address in a rate limit: IPv4 itself, also mapped; of IPv6 the /64, a subscriber's network. */
export function groupAddress(address: string): string {
  const groups = readGroups(address)
  return typeof groups === 'string' ? groups : `${groups.slice(0, 4).join(':')}::/64`
}

/**
 * The networks of an address, from the group of `groupAddress` to the widest that one subscriber usually gets: of IPv4 the
 * address and its /24, of IPv6 the /64, /56 and /48.
 */
export function listNetworks(address: string): [string, ...string[]] {
  const groups = readGroups(address)
  if (typeof groups === 'string') return [groups, groups.replace(/\.\d+$/, '.0/24')]
  const [first, second, third, fourth = '0'] = groups
  const site = `${first}:${second}:${third}`
  // The upper half of the fourth group, without leading zeros.
  const upper = (Number.parseInt(fourth, 16) & 0xff00).toString(16)
  return [`${site}:${fourth}::/64`, `${site}:${upper}::/56`, `${site}::/48`]
}

/** The eight groups of an IPv6 address, or an IPv4 address as it is. */
function readGroups(address: string): string | string[] {
  const plain = address.replace(/%.*$/, '')
  // Every IPv6 address has a colon, and the pattern of `isIPv6` is long.
  if (!plain.includes(':') || !isIPv6(plain)) return plain
  // The URL parser writes every spelling in the one canonical form (RFC 5952), dotted tails as groups.
  const canonical = new URL(`http://[${plain}]`).hostname.slice(1, -1)
  const [head = '', tail] = canonical.split('::')
  const front = head === '' ? [] : head.split(':')
  const back = tail ? tail.split(':') : []
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length
  const groups = [...front, ...Array<string>(zeros).fill('0'), ...back]
  if (groups.slice(0, 5).every((group) => group === '0') && groups[5] === 'ffff') {
    return groups
      .slice(6)
      .map((group) => group.padStart(4, '0'))
      .join('')
      .match(/../g)!
      .map((byte) => Number.parseInt(byte, 16))
      .join('.')
  }
  return groups
}

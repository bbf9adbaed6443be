import { isIPv6 } from 'node:net'

/**
 * The group that a rate limit counts an address in: an IPv4 address, also in its mapped form; of an IPv6 address its /64,
 * which is the usual size of one subscriber's network.
 */
export function groupAddress(address: string): string {
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
  return `${groups.slice(0, 4).join(':')}::/64`
}

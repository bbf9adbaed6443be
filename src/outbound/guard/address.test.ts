import { BlockList } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { classifyAddress, isInRange, parseAddress, parseIpv4, parseIpv6, parseRange } from './address.ts'

/** First and last address of each special range, with the public neighbours where there are any. */
const EDGES: [string, 'public' | 'forbidden'][] = [
  ['0.0.0.0', 'forbidden'],
  ['0.255.255.255', 'forbidden'],
  ['1.0.0.0', 'public'],
  ['9.255.255.255', 'public'],
  ['10.0.0.0', 'forbidden'],
  ['10.255.255.255', 'forbidden'],
  ['11.0.0.0', 'public'],
  ['100.63.255.255', 'public'],
  ['100.64.0.0', 'forbidden'],
  ['100.127.255.255', 'forbidden'],
  ['100.128.0.0', 'public'],
  ['126.255.255.255', 'public'],
  ['127.0.0.0', 'forbidden'],
  ['127.255.255.255', 'forbidden'],
  ['128.0.0.0', 'public'],
  ['168.63.129.15', 'public'],
  ['168.63.129.16', 'forbidden'],
  ['168.63.129.17', 'public'],
  ['169.253.255.255', 'public'],
  ['169.254.0.0', 'forbidden'],
  ['169.254.169.254', 'forbidden'],
  ['169.254.255.255', 'forbidden'],
  ['169.255.0.0', 'public'],
  ['172.15.255.255', 'public'],
  ['172.16.0.0', 'forbidden'],
  ['172.31.255.255', 'forbidden'],
  ['172.32.0.0', 'public'],
  ['192.0.0.0', 'forbidden'],
  ['192.0.0.255', 'forbidden'],
  ['192.0.1.0', 'public'],
  ['192.0.2.255', 'forbidden'],
  ['192.0.3.0', 'public'],
  ['192.88.99.1', 'forbidden'],
  ['192.88.100.0', 'public'],
  ['192.167.255.255', 'public'],
  ['192.168.0.0', 'forbidden'],
  ['192.168.255.255', 'forbidden'],
  ['192.169.0.0', 'public'],
  ['198.17.255.255', 'public'],
  ['198.18.0.0', 'forbidden'],
  ['198.19.255.255', 'forbidden'],
  ['198.20.0.0', 'public'],
  ['198.51.100.0', 'forbidden'],
  ['198.51.101.0', 'public'],
  ['203.0.113.255', 'forbidden'],
  ['203.0.114.0', 'public'],
  ['223.255.255.255', 'public'],
  ['224.0.0.0', 'forbidden'],
  ['239.255.255.255', 'forbidden'],
  ['240.0.0.0', 'forbidden'],
  ['255.255.255.255', 'forbidden'],
  ['::', 'forbidden'],
  ['::1', 'forbidden'],
  ['::7f00:1', 'forbidden'],
  ['::8.8.8.8', 'forbidden'],
  ['::ffff:8.8.8.8', 'forbidden'],
  ['::ffff:169.254.169.254', 'forbidden'],
  ['::ffff:0:127.0.0.1', 'forbidden'],
  ['::5efe:7f00:1', 'forbidden'],
  ['64:ff9b::8.8.8.8', 'forbidden'],
  ['64:ff9b::a9fe:a9fe', 'forbidden'],
  ['64:ff9b:1::1', 'forbidden'],
  ['100::1', 'forbidden'],
  ['1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'forbidden'],
  ['2000::', 'public'],
  ['2001::', 'forbidden'],
  ['2001:0:7f00:1::', 'forbidden'],
  ['2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', 'forbidden'],
  ['2001:200::', 'public'],
  ['2001:db7:ffff::', 'public'],
  ['2001:db8::', 'forbidden'],
  ['2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', 'forbidden'],
  ['2001:db9::', 'public'],
  ['2002::', 'forbidden'],
  ['2002:7f00:1::1', 'forbidden'],
  ['2003::', 'public'],
  ['2606:4700:4700::1111', 'public'],
  ['2620:4f:7fff::', 'public'],
  ['2620:4f:8000::', 'forbidden'],
  ['2620:4f:8001::', 'public'],
  ['3ffd:ffff::', 'public'],
  ['3ffe::', 'forbidden'],
  ['3fff::', 'forbidden'],
  ['3fff:fff:ffff::', 'forbidden'],
  ['3fff:1000::', 'public'],
  ['3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'public'],
  ['4000::', 'forbidden'],
  ['5f00::1', 'forbidden'],
  ['fc00::1', 'forbidden'],
  ['fd00:ec2::254', 'forbidden'],
  ['fe80::1', 'forbidden'],
  ['fec0::1', 'forbidden'],
  ['ff02::1', 'forbidden'],
]

describe('classifyAddress', () => {
  test.each(EDGES)('%s is %s', (text, verdict) => {
    expect(classifyAddress(text)).toBe(verdict)
  })

  test.each([
    '',
    'example.com',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '256.1.1.1',
    '0x8.8.8.8',
    '8.8.8.8 ',
    '８.8.8.8',
    '[2606::1]',
    '2606::1%eth0',
    '2606::1::2',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7:8::',
    '2606::12345',
    '2606:8.8.8.8::1',
    ':2606::1',
    '2606:::1',
    '2606:2:3:4:5:6:7:8::1::2',
  ])('"%s" is no address, so it is forbidden', (text) => {
    expect(parseAddress(text)).toBeUndefined()
    expect(classifyAddress(text)).toBe('forbidden')
  })

  test('agrees with the block list of Node on every plain IPv4 address', () => {
    const oracle = new BlockList()
    for (const range of IPV4_ORACLE) {
      const [net = '', prefix] = range.split('/')
      oracle.addSubnet(net, Number(prefix), 'ipv4')
    }
    const nearEdge = fc
      .tuple(fc.constantFrom(...IPV4_ORACLE), fc.integer({ min: -2, max: 2 }), fc.boolean())
      .map(nearIpv4Edge)
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), nearEdge), (text) => {
        expect(classifyAddress(text)).toBe(oracle.check(text, 'ipv4') ? 'forbidden' : 'public')
      }),
      { numRuns: 3_000 },
    )
  })

  test('agrees with the block list of Node on every IPv6 address', () => {
    const global = new BlockList()
    global.addSubnet('2000::', 3, 'ipv6')
    const special = new BlockList()
    for (const range of ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3ffe::/16', '3fff::/20']) {
      const [net = '', prefix] = range.split('/')
      special.addSubnet(net, Number(prefix), 'ipv6')
    }
    const group = fc.oneof(
      fc.integer({ min: 0, max: 0xffff }),
      fc.constantFrom(0, 0x2001, 0x2002, 0xdb8, 0x3fff, 0x3ffe, 0x4f, 0x8000),
    )
    const inGlobal = fc.tuple(
      fc.constantFrom('2001', '2002', '2620', '3fff', '3ffe', '2a00'),
      fc.array(group, { minLength: 7, maxLength: 7 }),
    )
    const text = fc.oneof(
      fc.ipV6(),
      inGlobal.map(([first, rest]) => [first, ...rest.map((each) => each.toString(16))].join(':')),
    )
    fc.assert(
      fc.property(text, (address) => {
        const isPublic = global.check(address, 'ipv6') && !special.check(address, 'ipv6')
        expect(classifyAddress(address)).toBe(isPublic ? 'public' : 'forbidden')
      }),
      { numRuns: 3_000 },
    )
  })

  test('an IPv6 form that embeds an IPv4 address is not public, even when the inner address is', () => {
    const hexGroups = (bytes: number[]) =>
      [bytes.slice(0, 2), bytes.slice(2)].map(([high = 0, low = 0]) => (high * 256 + low).toString(16)).join(':')
    fc.assert(
      fc.property(fc.array(fc.nat(255), { minLength: 4, maxLength: 4 }), (bytes) => {
        const dotted = bytes.join('.')
        const hex = hexGroups(bytes)
        const forms = [
          '::',
          '::ffff:',
          '::ffff:0:',
          '64:ff9b::',
          '64:ff9b:1::',
          '::5efe:',
          'fe80::5efe:',
          '::0200:5efe:',
        ]
        for (const form of forms) expect(classifyAddress(form + dotted)).toBe('forbidden')
        for (const form of forms) expect(classifyAddress(form + hex)).toBe('forbidden')
        expect(classifyAddress(`2002:${hex}::1`)).toBe('forbidden')
        expect(classifyAddress(`2001:0:${hex}::`)).toBe('forbidden')
      }),
    )
  })
})

describe('parsing', () => {
  test('parses an IPv4 address to its number', () => {
    fc.assert(
      fc.property(fc.nat(0xffffffff), (value) => {
        const text = [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.')
        expect(parseIpv4(text)).toBe(value)
      }),
    )
  })

  test('parses every spelling of an IPv6 address to the same number', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }), fc.nat(2 ** 8 - 1), (random, zeroMask) => {
        const groups = Array.from({ length: 8 }, (_, index) =>
          (zeroMask >> index) & 1 ? 0 : Number((random >> BigInt(112 - index * 16)) & 0xffffn),
        )
        const value = groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n)
        const full = groups.map((group) => group.toString(16).padStart(4, '0')).join(':')
        const short = new URL(`http://[${full}]/`).hostname.slice(1, -1)
        expect(parseIpv6(full)).toBe(value)
        expect(parseIpv6(full.toUpperCase())).toBe(value)
        expect(parseIpv6(short)).toBe(value)
      }),
    )
  })

  test('reads the dotted end of an IPv6 address as its last two groups', () => {
    expect(parseIpv6('::ffff:1.2.3.4')).toBe(0xffff_0102_0304n)
  })

  test('accepts exactly the IPv6 texts that the URL parser accepts', () => {
    const piece = fc.constantFrom(
      '0',
      '1',
      'f',
      'ffff',
      '10000',
      ':',
      '::',
      '1.2.3.4',
      '01.2.3.4',
      '256.1.1.1',
      'g',
      '',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.boolean(), (pieces, isJoined) => {
        const text = pieces.join(isJoined ? ':' : '')
        expect(parseIpv6(text) !== undefined).toBe(URL.canParse(`http://[${text}]/`))
      }),
      { numRuns: 3_000 },
    )
  })

  test('parses a range, and an address as a range of one', () => {
    expect(parseRange('10.0.0.0/8')).toEqual({ family: 4, value: 0x0a000000n, prefix: 8 })
    expect(parseRange('10.0.0.5')).toEqual({ family: 4, value: 0x0a000005n, prefix: 32 })
    expect(parseRange('0.0.0.0/0')).toEqual({ family: 4, value: 0n, prefix: 0 })
    expect(parseRange('::1')).toEqual({ family: 6, value: 1n, prefix: 128 })
  })

  test.each([
    '10.0.0.5/8',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/08',
    '10.0.0.0/8/8',
    'fd00::1/8',
    '::/129',
    'x/8',
    '/8',
  ])('refuses the range %s', (text) => {
    expect(parseRange(text)).toBeUndefined()
  })

  test('an IPv4 range does not contain IPv6 forms of its addresses', () => {
    const range = parseRange('10.0.0.0/8')!
    expect(isInRange(parseAddress('10.255.255.255')!, range)).toBe(true)
    expect(isInRange(parseAddress('11.0.0.0')!, range)).toBe(false)
    expect(isInRange(parseAddress('::ffff:10.0.0.1')!, range)).toBe(false)
    expect(isInRange(parseAddress('::10.0.0.1')!, range)).toBe(false)
  })
})

const IPV4_ORACLE = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '168.63.129.16/32', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
]

function nearIpv4Edge([range, offset, isEnd]: [string, number, boolean]): string {
  const { value, prefix } = parseRange(range)!
  const edge = Number(value) + (isEnd ? 2 ** (32 - prefix) - 1 : 0) + offset
  const inside = Math.min(Math.max(edge, 0), 0xffffffff)
  return [24, 16, 8, 0].map((shift) => Math.floor(inside / 2 ** shift) % 256).join('.')
}

import { isIP } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findClientAddress, parseTrustProxy } from './client-address.ts'

const PROXY = '10.0.0.1'
const find = (trust: string, forwardedFor: string | undefined, peer = PROXY) =>
  findClientAddress({ peer, forwardedFor, trust: parseTrustProxy(trust) })

describe('TRUST_PROXY', () => {
  test.each([
    'false',
    '1',
    '32',
    '10.0.0.1',
    '10.0.0.0/8',
    'fd00::/8, ::1',
    'loopback,linklocal,uniquelocal,192.0.2.7',
  ])('takes %s', (text) => {
    expect(() => parseTrustProxy(text)).not.toThrow()
  })

  test.each([
    '0',
    '33',
    '100',
    '-1',
    '1.5',
    'yes',
    'TRUE',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0',
    'proxy.example.com',
    'loopback,',
    'toString',
    'fe80::1%eth0',
    '1,10.0.0.0/8',
  ])('refuses %s with the rule', (text) => {
    expect(() => parseTrustProxy(text)).toThrow(/^must be false, the number of proxies/)
  })

  test.each(['0.0.0.0/0', '::/0', '10.0.0.0/8,0.0.0.0/0'])('refuses %s, which contains every address', (text) => {
    expect(() => parseTrustProxy(text)).toThrow(/^must be false/)
  })

  test('refuses true and names the accepted forms', () => {
    expect(() => parseTrustProxy('true')).toThrow(/must not be true.*such as 1.*such as 10\.0\.0\.0\/8$/)
  })
})

describe('the address of the client', () => {
  test.each([
    ['false', '203.0.113.9', PROXY],
    ['false', undefined, PROXY],
    ['1', undefined, PROXY],
    ['1', '', PROXY],
    ['1', '203.0.113.9', '203.0.113.9'],
    ['1', '198.51.100.1, 203.0.113.9', '203.0.113.9'],
    ['2', '198.51.100.1, 203.0.113.9, 10.0.0.2', '203.0.113.9'],
    ['2', '203.0.113.9', '203.0.113.9'],
    ['3', '198.51.100.1, 203.0.113.9', '198.51.100.1'],
    ['10.0.0.0/8', '203.0.113.9', '203.0.113.9'],
    ['10.0.0.0/8', '198.51.100.1, 203.0.113.9, 10.0.0.2, 10.0.0.3', '203.0.113.9'],
    ['10.0.0.0/8', '198.51.100.1, 10.0.0.9, 203.0.113.9', '203.0.113.9'],
    ['10.0.0.0/8', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['192.0.2.0/24', '203.0.113.9', PROXY],
    ['uniquelocal', '203.0.113.9, 192.168.1.1, 172.31.0.1, fd12::1', '203.0.113.9'],
    ['uniquelocal', '203.0.113.9, 172.32.0.1', '172.32.0.1'],
    ['10.0.0.1', '2001:db8::7', '2001:db8::7'],
    ['10.0.0.1', '203.0.113.9,, ,', '203.0.113.9'],
    ['10.0.0.1', '  203.0.113.9\t', '203.0.113.9'],
  ])('with TRUST_PROXY=%s and X-Forwarded-For: %s is %s', (trust, header, address) => {
    expect(find(trust, header)).toEqual({ address, ignored: undefined })
  })

  test.each([
    ['203.0.113.9:4711', '203.0.113.9'],
    ['[2001:db8::7]:443', '2001:db8::7'],
    ['[2001:db8::7]', '2001:db8::7'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['fe80::1%eth0', 'fe80::1'],
  ])('in the spelling %s is %s', (header, address) => {
    expect(find('1', header)).toEqual({ address, ignored: undefined })
  })

  test.each(['::ffff:10.0.0.1', '10.0.0.1'])('is read from a trusted peer %s', (peer) => {
    expect(find('10.0.0.0/8', '203.0.113.9', peer).address).toBe('203.0.113.9')
  })

  test.each(['::1', '127.0.0.1', '::ffff:127.0.0.1'])('loopback trusts %s', (peer) => {
    expect(find('loopback', '203.0.113.9', peer).address).toBe('203.0.113.9')
  })

  test.each([
    'unknown',
    '_hidden',
    '203.0.113',
    '203.0.113.256',
    '203.0.113.9:99999999',
    '2001:db8::7:443x',
    '[203.0.113.9]:80',
    '[2001:db8::7',
    '"203.0.113.9"',
    'for=203.0.113.9',
    '0x7f000001',
    '<script>',
  ])('is that of the proxy which wrote %s, not an IP address, and entries to its left are ignored', (entry) => {
    for (const trust of ['1', '3', '10.0.0.0/8'])
      expect(find(trust, `198.51.100.1, ${entry}`)).toEqual({ address: PROXY, ignored: entry })
  })
})

const octet = fc.nat(255)
const ipv4 = fc.tuple(octet, octet, octet, octet).map((parts) => parts.join('.'))
const address = fc.oneof(ipv4, fc.ipV6())
const anything = fc.oneof(address, fc.string({ unit: 'grapheme-ascii' }), fc.constantFrom('10.0.0.1', 'unknown', ''))
const trusts = fc.constantFrom('1', '2', '5', '10.0.0.0/8', 'loopback,uniquelocal')

describe('for any header', () => {
  test('entries to the left of the rightmost untrusted address have no effect', () => {
    const outside = address.filter((item) => find('uniquelocal,10.0.0.0/8', '1.1.1.1', item).address !== '1.1.1.1')
    fc.assert(
      fc.property(fc.array(anything), outside, (forged, client) => {
        const header = [...forged, client].join(', ')
        expect(find('uniquelocal', header)).toEqual(find('uniquelocal', client))
        expect(find('1', header)).toEqual(find('1', client))
      }),
    )
  })

  test('with n hops only the last n entries are read', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.array(anything),
        fc.array(address, { minLength: 4 }),
        (n, forged, own) => {
          const header = [...forged, ...own].join(',')
          expect(find(String(n), header)).toEqual(find(String(n), own.slice(-n).join(',')))
        },
      ),
    )
  })

  test('the result is an IP address', () => {
    fc.assert(
      fc.property(trusts, fc.array(anything), address, (trust, entries, peer) => {
        const found = find(trust, entries.join(','), peer)
        expect(isIP(found.address)).not.toBe(0)
        if (found.ignored !== undefined) expect(isIP(found.ignored)).toBe(0)
      }),
    )
  })
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseNatsUrl } from './nats-url.ts'

test('one or several URLs name the servers, and one user for all', () => {
  expect(parseNatsUrl('nats://a:4222, nats://[::1]')).toEqual({
    servers: ['a:4222', '[::1]:4222'],
    isTls: false,
    auth: { kind: 'none' },
  })
  expect(parseNatsUrl('tls://app:p%40ss@a:4443,tls://b')).toEqual({
    servers: ['a:4443', 'b:4222'],
    isTls: true,
    auth: { kind: 'password', user: 'app', password: 'p@ss' },
  })
  expect(parseNatsUrl('nats://s3cr3t@a').auth).toEqual({ kind: 'token', token: 's3cr3t' })
})

test.each([
  ['', 'one or more URLs'],
  ['http://a', 'one or more URLs'],
  ['nats://a/path', 'without a path'],
  ['nats://a?x=1', 'without a path'],
  ['nats://a,', 'one or more URLs'],
  ['nats://a,tls://b', 'must not mix'],
  ['tls://127.0.0.1', 'names of hosts'],
  ['tls://[::1]:4222', 'names of hosts'],
  ['nats://x:secret-1@a,nats://y:secret-2@b', 'the same user'],
  ['nats://%ff:secret-1@a', 'percent-encoded'],
  [Array.from({ length: 17 }, () => 'nats://a').join(','), 'at most 16'],
])('%j is refused, and its secret is not repeated', (text, message) => {
  expect(() => parseNatsUrl(text)).toThrow(message)
  expect(() => parseNatsUrl(text)).not.toThrow(/secret-/)
})

test('any text is parsed or refused with a message that does not contain it', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 8 }), (text) => {
      try {
        parseNatsUrl(`nats://${text}`)
      } catch (error) {
        expect((error as Error).message).not.toContain(text)
      }
    }),
  )
})

import { describe, expect, test } from 'vitest'
import { findForeignSign, isLoopbackHost } from './local-request.ts'

const LOCAL = { peer: '127.0.0.1', httpVersion: '1.1', headers: { host: 'localhost:3000' } }

describe('the name of a request of this machine', () => {
  test.each([
    'localhost',
    'localhost:3000',
    'LOCALHOST:3000',
    'app.localhost:3000',
    'a.b.localhost',
    '127.0.0.1',
    '127.0.0.1:3000',
    '127.255.255.254:1',
    '[::1]',
    '[::1]:3000',
  ])('is %s', (host) => {
    expect(isLoopbackHost(host)).toBe(true)
  })

  test.each([
    '',
    'evil.example',
    'evil.example:3000',
    'localhost.evil.example',
    'notlocalhost',
    'localhost@evil.example',
    'evil.example#localhost',
    'localhost:3000:evil.example',
    'localhost, evil.example',
    'localhost evil.example',
    '127.0.0.1.evil.example',
    '127.0.0.999',
    '128.0.0.1',
    '0.0.0.0:3000',
    '[::]:3000',
    '[::ffff:127.0.0.1]',
    '192.168.0.1:3000',
    undefined,
  ])('is not %s', (host) => {
    expect(isLoopbackHost(host)).toBe(false)
  })
})

describe('a request of this machine', () => {
  test.each(['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'])('comes from %s', (peer) => {
    expect(findForeignSign({ ...LOCAL, peer })).toBeUndefined()
  })

  test.each(['192.168.0.7', '::ffff:10.0.0.1', 'fe80::1', '', undefined])('does not come from %s', (peer) => {
    expect(findForeignSign({ ...LOCAL, peer })).toBe('peer')
  })

  test('keeps the headers that browsers and commands send', () => {
    const headers = {
      ...LOCAL.headers,
      'user-agent': 'curl',
      accept: '*/*',
      origin: 'http://localhost:3000',
      'x-request-id': 'one',
      'x-service-signature': 't=1,v1=a',
      traceparent: '00-0',
    }
    expect(findForeignSign({ ...LOCAL, headers })).toBeUndefined()
  })

  test.each([
    'forwarded',
    'via',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-forwarded',
    'x-real-ip',
    'x-client-ip',
    'x-original-host',
    'x-original-forwarded-for',
    'true-client-ip',
    'cf-connecting-ip',
    'cf-ray',
    'cdn-loop',
    'fly-client-ip',
    'x-envoy-external-address',
    'x-amzn-trace-id',
    'tailscale-user-login',
  ])('carries no %s, whatever its value', (name) => {
    for (const value of ['127.0.0.1', 'localhost', ''])
      expect(findForeignSign({ ...LOCAL, headers: { ...LOCAL.headers, [name]: value } })).toBe(name)
  })

  test('is not of HTTP/1.0, which proxies without any header of their own speak', () => {
    expect(findForeignSign({ ...LOCAL, httpVersion: '1.0' })).toBe('http/1.0')
  })
})

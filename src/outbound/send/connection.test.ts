import { type AddressInfo, createServer } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type Receiver, startReceiver } from '../../../test/harness/fakes/receiver.ts'
import {
  type Certificate,
  createAuthority,
  createSelfSigned,
  expiredValidity,
} from '../../../test/harness/fakes/tls.ts'
import { calmWatch } from '../../../test/harness/run/calm-watch.ts'
import { parseAllowedTargets } from '../guard/callback-url.ts'
import { buildHttpSender, type HttpSenderOptions } from './http-sender.ts'

const NAME = 'hooks.example.com'
const closing: { close(): Promise<unknown> }[] = []

const authority = await createAuthority()
afterEach(async () => {
  await Promise.all(closing.splice(0).map((each) => each.close()))
  vi.unstubAllEnvs()
})

async function receive(tls?: Certificate): Promise<Receiver> {
  const receiver = await startReceiver(tls === undefined ? {} : { tls })
  closing.push(receiver)
  return receiver
}

async function post(port: number, options: Partial<HttpSenderOptions> & { host?: string } = {}) {
  const rules = { allowHttp: false, allowedPrivateTargets: parseAllowedTargets('127.0.0.1') }
  const sender = buildHttpSender({
    ...{ lookup: async () => ['127.0.0.1'], rules, ca: authority.ca, watch: calmWatch },
    ...options,
  })
  closing.push(sender)
  return sender.post({ url: `https://${options.host ?? NAME}:${port}/h`, headers: {}, body: '{}' })
}

describe('TLS', () => {
  test('a certificate for the name is accepted, and the handshake sends the name (SNI)', async () => {
    const receiver = await receive(await authority.issue([NAME]))
    const result = await post(receiver.port)
    expect(result).toMatchObject({ outcome: 'response', statusCode: 200 })
    expect(result.timings.tlsMs).toBeGreaterThan(0)
    expect(receiver.requests[0]).toMatchObject({ servername: NAME, headers: { host: `${NAME}:${receiver.port}` } })
  })

  test('a certificate for the address is accepted for a literal, and the handshake sends no name', async () => {
    const receiver = await receive(await authority.issue(['127.0.0.1']))
    expect(await post(receiver.port, { host: '127.0.0.1' })).toMatchObject({ statusCode: 200 })
    expect(receiver.requests[0]!.servername).toBe(false)
  })

  test('a listed host with a root dot matches the certificate without one', async () => {
    const receiver = await receive(await authority.issue([NAME]))
    const rules = { allowHttp: false, allowedPrivateTargets: parseAllowedTargets(`127.0.0.1,${NAME}`) }
    expect(await post(receiver.port, { host: `${NAME}.`, rules })).toMatchObject({ statusCode: 200 })
  })

  test.each<[string, () => Promise<Certificate>, string]>([
    ['an expired certificate', () => authority.issue([NAME], expiredValidity()), 'CERT_HAS_EXPIRED'],
    ['a certificate for another host', () => authority.issue(['other.example.com']), 'ERR_TLS_CERT_ALTNAME_INVALID'],
    [
      'a certificate for the address under a name',
      () => authority.issue(['127.0.0.1']),
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    ['a self-signed certificate', () => createSelfSigned([NAME]), 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    [
      'a certificate of an unknown authority',
      async () => (await createAuthority()).issue([NAME]),
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ],
  ])('%s is a tls error and no request is sent', async (_what, issue, errorCode) => {
    const receiver = await receive(await issue())
    expect(await post(receiver.port)).toMatchObject({ outcome: 'error', errorClass: 'tls', errorCode })
    expect(receiver.requests).toEqual([])
  })

  test('the environment cannot disable the certificate check', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    const receiver = await receive(await createSelfSigned([NAME]))
    expect(await post(receiver.port)).toMatchObject({ errorClass: 'tls' })
  })

  test('a plain http server behind https is a tls error', async () => {
    const plain = createServer((socket) =>
      socket
        .on('error', () => {})
        .resume()
        .end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    )
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
    closing.push({ close: () => new Promise((resolve) => plain.close(resolve)) })
    expect(await post((plain.address() as AddressInfo).port)).toMatchObject({ errorClass: 'tls' })
  })

  test('a handshake that does not finish fails at the connect limit', async () => {
    const receiver = await receive()
    const result = await post(receiver.port, { connectTimeoutMs: 100 })
    expect(result).toMatchObject({ errorClass: 'tls', errorCode: 'CONNECT_TIMEOUT' })
    expect(result.timings.connectMs).not.toBeNull()
    await expect.poll(() => receiver.openConnectionCount()).toBe(0)
  })

  test('the deadline ends a handshake, and no POST is sent after it', async () => {
    const receiver = await receive()
    expect(await post(receiver.port, { totalTimeoutMs: 100 })).toMatchObject({ errorClass: 'connect' })
    await expect.poll(() => receiver.openConnectionCount()).toBe(0)
    expect(receiver.requests).toEqual([])
  })
})

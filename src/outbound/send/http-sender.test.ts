import { afterEach, describe, expect, test, vi } from 'vitest'
import { type Receiver, startReceiver } from '../../../test/harness/fakes/receiver.ts'
import { calmWatch } from '../../../test/harness/run/calm-watch.ts'
import { parseAllowedTargets } from '../guard/callback-url.ts'
import { buildSystemLookup } from '../guard/dns.ts'
import { buildHttpSender, type HttpSender, type HttpSenderOptions, type PostRequest } from './http-sender.ts'

const NAME = 'hooks.example.com'
const senders: HttpSender[] = []
const receivers: Receiver[] = []

afterEach(async () => {
  await Promise.all([...senders.splice(0), ...receivers.splice(0)].map((each) => each.close()))
  vi.unstubAllEnvs()
})

async function receive() {
  const receiver = await startReceiver()
  receivers.push(receiver)
  return receiver
}

/** A sender that may reach loopback by address range, so that names go through the whole guard. */
function build(answers: string[][] | (() => Promise<string[]>), options: Partial<HttpSenderOptions> = {}) {
  const queue = Array.isArray(answers) ? [...answers] : []
  const lookup = vi.fn(Array.isArray(answers) ? async () => (queue.length > 1 ? queue.shift()! : queue[0]!) : answers)
  const rules = { allowHttp: true, allowedPrivateTargets: parseAllowedTargets('127.0.0.0/8') }
  const sender = buildHttpSender({ lookup, rules, watch: calmWatch, ...options })
  senders.push(sender)
  return { sender, lookup }
}

function request(port: number, change: Partial<PostRequest> = {}): PostRequest {
  const headers = { 'content-type': 'application/json', 'x-service-event': 'a.b' }
  return { url: `http://${NAME}:${port}/hook?a=b`, headers, body: '{"a":"é"}', ...change }
}

describe('the POST', () => {
  test('is received as it was signed: path, headers, raw body, and the name as Host', async () => {
    const receiver = await receive()
    const { sender } = build([['127.0.0.1']])
    const result = await sender.post(request(receiver.port))
    expect(result).toMatchObject({
      outcome: 'response',
      statusCode: 200,
      responseExcerpt: '{"ok":true}',
      responseHeaders: { 'content-type': 'application/json' },
      bodyEnd: 'complete',
    })
    const [got] = receiver.requests
    expect(got).toMatchObject({ method: 'POST', path: '/hook?a=b' })
    expect(got!.body.toString()).toBe('{"a":"é"}')
    expect(got!.headers).toMatchObject({
      host: `${NAME}:${receiver.port}`,
      'content-type': 'application/json',
      'x-service-event': 'a.b',
      'accept-encoding': 'identity',
      'content-length': '10',
    })
    expect(got!.headers).not.toHaveProperty('cookie')
  })

  test('reports the duration of each stage, and none to connect for a reused connection', async () => {
    const receiver = await receive()
    const { sender } = build([['127.0.0.1']])
    const first = await sender.post(request(receiver.port))
    const second = await sender.post(request(receiver.port))
    const time = expect.any(Number)
    expect(first.timings).toEqual({ dnsMs: time, connectMs: time, tlsMs: null, firstByteMs: time, totalMs: time })
    expect(second.timings).toEqual({ dnsMs: time, connectMs: null, tlsMs: null, firstByteMs: time, totalMs: time })
    expect(Number.isInteger(first.durationMs)).toBe(true)
  })

  test('measures with the given clock', async () => {
    const receiver = await receive()
    let ticks = 0
    const { sender } = build([['127.0.0.1']], { now: () => ticks++ * 1_000 })
    const result = await sender.post(request(receiver.port))
    expect(result.durationMs % 1_000).toBe(0)
    expect(result.durationMs).toBeGreaterThan(0)
  })

  test('ignores a proxy of the environment', async () => {
    const receiver = await receive()
    const proxy = await receive()
    for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY']) vi.stubEnv(name, proxy.origin)
    const { sender } = build([['127.0.0.1']])
    expect(await sender.post(request(receiver.port))).toMatchObject({ statusCode: 200 })
    expect(proxy.connectionCount()).toBe(0)
  })

  test('a header or a URL that cannot be sent is a result, not an exception', async () => {
    const receiver = await receive()
    const { sender } = build([['127.0.0.1']])
    const broken = await sender.post(request(receiver.port, { headers: { 'x-a': 'line\r\nx-evil: 1' } }))
    expect(broken).toMatchObject({ outcome: 'error', errorClass: 'protocol', errorCode: 'REQUEST_INVALID' })
    for (const url of ['', 'nonsense', 'https://user@example.com/', 'ftp://example.com/']) {
      expect(await sender.post(request(0, { url }))).toMatchObject({ errorClass: 'blocked_address' })
    }
    expect(receiver.requests).toEqual([])
  })
})

describe('the guard at each POST', () => {
  test.each([
    ['a public and a private address', ['127.0.0.1', '10.0.0.5']],
    ['a mapped metadata address', ['::ffff:169.254.169.254']],
    ['a NAT64 metadata address', ['64:ff9b::a9fe:a9fe']],
    ['a 6to4 address', ['2002:7f00:1::1']],
    ['a Teredo address', ['2001:0:7f00:1::']],
    ['a site-local address', ['fec0::1']],
    ['an IPv4-compatible address', ['::7f00:1']],
    ['the metadata address, as behind an alias', ['169.254.169.254']],
  ])('a name that answers with %s is blocked and nothing is dialled', async (_what, answer) => {
    const receiver = await receive()
    const { sender } = build([answer])
    const result = await sender.post(request(receiver.port))
    expect(result).toMatchObject({ outcome: 'error', errorClass: 'blocked_address', errorCode: 'ADDRESS_NOT_PUBLIC' })
    for (const address of answer) expect(JSON.stringify(result)).not.toContain(address)
    expect(receiver.connectionCount()).toBe(0)
  })

  test('loopback is blocked as name and as literal when nothing is listed', async () => {
    const receiver = await receive()
    const { sender } = build([['127.0.0.1']], { rules: { allowHttp: true, allowedPrivateTargets: [] } })
    expect(await sender.post(request(receiver.port))).toMatchObject({ errorClass: 'blocked_address' })
    for (const host of ['127.0.0.1', 'localhost', '2130706433', '[::1]', '[::ffff:127.0.0.1]']) {
      const url = `http://${host}:${receiver.port}/`
      expect(await sender.post(request(0, { url })), host).toMatchObject({ errorClass: 'blocked_address' })
    }
    expect(receiver.connectionCount()).toBe(0)
  })

  test('http is refused at the POST too where the environment does not allow it', async () => {
    const receiver = await receive()
    const rules = { allowHttp: false, allowedPrivateTargets: parseAllowedTargets('127.0.0.0/8') }
    const { sender } = build([['127.0.0.1']], { rules })
    expect(await sender.post(request(receiver.port))).toMatchObject({
      errorClass: 'blocked_address',
      errorCode: 'URL_NOT_HTTPS',
    })
  })

  test('a rebinding name is resolved once for each POST, and that answer is dialled', async () => {
    const receiver = await receive()
    const { sender, lookup } = build([['127.0.0.1'], ['10.0.0.5']])
    expect(await sender.post(request(receiver.port))).toMatchObject({ statusCode: 200 })
    expect(lookup.mock.calls).toEqual([[`${NAME}.`]])
    // The idle connection is usable, but the new answer decides.
    expect(sender.idleConnectionCount()).toBe(1)
    expect(await sender.post(request(receiver.port))).toMatchObject({ errorClass: 'blocked_address' })
    expect(lookup).toHaveBeenCalledTimes(2)
    expect(receiver.requests).toHaveLength(1)
  })

  test('a changed answer does not use the idle connection', async () => {
    const receiver = await receive()
    const { sender } = build([['127.0.0.1'], ['127.0.0.1'], ['127.0.0.1', '127.0.0.9']])
    for (let count = 0; count < 3; count += 1) await sender.post(request(receiver.port))
    const [first, second, third] = receiver.requests.map(({ remotePort }) => remotePort)
    expect(second).toBe(first)
    expect(third).not.toBe(first)
  })

  test('receivers of one origin share a connection, one POST after the other', async () => {
    const receiver = await receive()
    const { sender } = build([['127.0.0.1']])
    const url = request(receiver.port).url
    for (const path of ['/one', '/other'])
      await sender.post({ ...request(receiver.port), url: new URL(path, url).href })
    await Promise.all([sender.post(request(receiver.port)), sender.post(request(receiver.port))])
    const [first, second, ...concurrent] = receiver.requests.map(({ remotePort }) => remotePort)
    expect(second).toBe(first)
    expect(new Set(concurrent).size).toBe(2)
  })

  test('a close that lies unread on an idle connection is read before the next POST, which dials anew', async () => {
    const receiver = await receive()
    let laterMs = 0
    const { sender } = build([], { now: () => performance.now() + laterMs })
    const { url } = request(0, { url: `${receiver.origin}/hook` })
    expect(await sender.post(request(0, { url }))).toMatchObject({ statusCode: 200 })
    for (let step = 0; step < 20; step += 1) {
      laterMs += 200
      const taken = receiver.connectionCount()
      // In one callback: nothing is read between the close and the POST.
      receiver.closeConnections()
      expect(await sender.post(request(0, { url }))).toMatchObject({ statusCode: 200 })
      expect(receiver.connectionCount()).toBe(taken + 1)
    }
  })

  test('the sink is reached at its exempt address', async () => {
    const receiver = await receive()
    const sinkUrl = `${receiver.origin}/api/v3/webhook/sink`
    const { sender } = build([], { rules: { allowHttp: false, sinkUrl, allowedPrivateTargets: [] } })
    expect(await sender.post(request(0, { url: sinkUrl }))).toMatchObject({ statusCode: 200 })
    expect(await sender.post(request(0, { url: `${receiver.origin}/other` }))).toMatchObject({
      errorClass: 'blocked_address',
    })
  })
})

describe('the pinned connection', () => {
  test('an unchecked peer address ends the connection before a byte is sent', async () => {
    const receiver = await receive()
    // The kernel maps 0.0.0.0 to loopback, so the peer address differs from the dialled one.
    const rules = { allowHttp: true, allowedPrivateTargets: parseAllowedTargets('0.0.0.0') }
    const { sender } = build([['0.0.0.0']], { rules })
    expect(await sender.post(request(receiver.port))).toMatchObject({
      errorClass: 'connect',
      errorCode: 'ADDRESS_CHANGED',
    })
    expect(receiver.requests).toEqual([])
  })

  test('the sink at localhost is found by the look-up of the machine, in either address family', async () => {
    const receiver = await receive()
    const sinkUrl = `http://localhost:${receiver.port}/api/v3/webhook/sink`
    const rules = { allowHttp: true, sinkUrl, allowedPrivateTargets: [] }
    const { sender } = build([], { rules, lookup: buildSystemLookup() })
    expect(await sender.post(request(0, { url: sinkUrl }))).toMatchObject({ statusCode: 200 })
  })
})

describe('failing to reach the receiver', () => {
  test('an empty answer, a failed look-up and one that does not finish are dns errors', async () => {
    expect(await build([[]]).sender.post(request(1234))).toMatchObject({ errorClass: 'dns', errorCode: 'DNS_EMPTY' })
    const servfail = () => Promise.reject(Object.assign(new Error('10.0.0.53'), { code: 'ESERVFAIL' }))
    expect(await build(servfail).sender.post(request(1234))).toMatchObject({
      errorClass: 'dns',
      errorCode: 'ESERVFAIL',
    })
    const never = () => new Promise<string[]>(() => {})
    const late = { errorClass: 'dns', errorCode: 'DNS_TIMEOUT' }
    expect(await build(never, { dnsTimeoutMs: 20 }).sender.post(request(1234))).toMatchObject(late)
    expect(await build(never, { totalTimeoutMs: 20 }).sender.post(request(1234))).toMatchObject(late)
  })

  test('a refused connection is a connect error without an address in it', async () => {
    const receiver = await receive()
    await receiver.close()
    const { sender } = build([['127.0.0.1', '127.0.0.2']])
    const result = await sender.post(request(receiver.port))
    expect(result).toMatchObject({ outcome: 'error', errorClass: 'connect', errorCode: 'ECONNREFUSED' })
    expect(JSON.stringify(result)).not.toContain('127.0.0')
  })

  test('the next address is tried when the first refuses', async () => {
    const receiver = await receive()
    const { sender } = build([['127.0.0.77', '127.0.0.1']])
    expect(await sender.post(request(receiver.port))).toMatchObject({ statusCode: 200 })
  })

  test('a stopped POST is interrupted, before, during the look-up and during the response', async () => {
    const receiver = await receive()
    receiver.behave({ kind: 'hang' })
    const { sender } = build([['127.0.0.1']])
    const interrupted = { outcome: 'error', errorClass: 'interrupted', errorCode: 'STOPPED' }
    expect(await sender.post(request(receiver.port, { signal: AbortSignal.abort() }))).toMatchObject(interrupted)
    expect(receiver.connectionCount()).toBe(0)
    const controller = new AbortController()
    const running = sender.post(request(receiver.port, { signal: controller.signal }))
    await receiver.waitFor(1)
    controller.abort()
    expect(await running).toMatchObject(interrupted)
    const { sender: asking } = build(() => new Promise(() => {}))
    const stop = new AbortController()
    const lookingUp = asking.post(request(receiver.port, { signal: stop.signal }))
    stop.abort()
    expect(await lookingUp).toMatchObject(interrupted)
  })

  test('closing interrupts POSTs in flight, closes every connection and refuses new POSTs', async () => {
    const receiver = await receive()
    const { sender } = build([['127.0.0.1']])
    await sender.post(request(receiver.port))
    receiver.behave({ kind: 'hang' })
    const running = sender.post(request(receiver.port))
    const other = sender.post(request(receiver.port))
    await receiver.waitFor(3)
    await sender.close()
    expect(await running).toMatchObject({ errorClass: 'interrupted' })
    expect(await other).toMatchObject({ errorClass: 'interrupted' })
    expect(await sender.post(request(receiver.port))).toMatchObject({ errorClass: 'interrupted' })
    await expect.poll(() => receiver.openConnectionCount()).toBe(0)
    expect(sender.idleConnectionCount()).toBe(0)
  })
})

import { afterEach, describe, expect, test } from 'vitest'
import { type Behaviour, type Receiver, startReceiver } from '../../../test/harness/fakes/receiver.ts'
import { calmWatch } from '../../../test/harness/run/calm-watch.ts'
import { parseAllowedTargets } from '../guard/callback-url.ts'
import { buildHttpSender, type HttpSender, type HttpSenderOptions } from './http-sender.ts'

let receiver: Receiver
const senders: HttpSender[] = []

afterEach(async () => {
  await Promise.all(senders.splice(0).map((sender) => sender.close()))
  await receiver.close()
})

/** Sends `count` POSTs in sequence to a receiver with this behaviour. */
async function send(behaviour: Behaviour, options: Partial<HttpSenderOptions> & { count?: number } = {}) {
  receiver = await startReceiver()
  receiver.behave(behaviour)
  const rules = { allowHttp: true, allowedPrivateTargets: parseAllowedTargets('127.0.0.1') }
  const sender = buildHttpSender({ lookup: async () => [], rules, watch: calmWatch, ...options })
  senders.push(sender)
  const post = () => sender.post({ url: `${receiver.origin}/h`, headers: { 'x-a': 'b' }, body: '{}' })
  const results = []
  for (let count = 0; count < (options.count ?? 1); count += 1) results.push(await post())
  return { result: results[0]!, results, sender, post }
}

describe('an answer', () => {
  test.each([200, 201, 202, 204, 205, 299, 400, 401, 404, 410, 429, 500, 503, 599])(
    '%d is reported',
    async (status) => {
      const { result } = await send({ kind: 'status', status })
      expect(result).toMatchObject({ outcome: 'response', statusCode: status, bodyEnd: 'complete' })
    },
  )

  test.each([301, 302, 303, 307, 308])('a %d is reported and not followed', async (status) => {
    const trap = await startReceiver()
    const { result } = await send({ kind: 'redirect', status, location: `${trap.origin}/inside` })
    expect(result).toMatchObject({ statusCode: status, responseHeaders: { location: `${trap.origin}/inside` } })
    expect(trap.connectionCount()).toBe(0)
    expect(receiver.requests).toHaveLength(1)
    await trap.close()
  })

  test.each([[[100]], [[102]], [[103]], [[100, 103, 100]], [[103, 100, 102]], [[199]]])(
    'interim responses %j are skipped',
    async (statuses) => {
      const { results } = await send({ kind: 'interim', statuses }, { count: 2 })
      for (const result of results) expect(result).toMatchObject({ statusCode: 200, responseExcerpt: 'after' })
      expect(receiver.connectionCount()).toBe(1)
    },
  )

  test('204 without a body keeps the connection open', async () => {
    const { results } = await send({ kind: 'no-content' }, { count: 3 })
    for (const result of results)
      expect(result).toMatchObject({ statusCode: 204, responseExcerpt: '', bodyEnd: 'complete' })
    expect(receiver.connectionCount()).toBe(1)
  })

  test('a body that ends by closing is complete, and the next POST opens a new connection', async () => {
    const { results } = await send({ kind: 'close' }, { count: 2 })
    for (const result of results)
      expect(result).toMatchObject({ statusCode: 200, responseExcerpt: 'bye', bodyEnd: 'complete' })
    expect(receiver.connectionCount()).toBe(2)
  })

  test('a chunked body is read', async () => {
    const bytes = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'
    const { result } = await send({ kind: 'raw', bytes })
    expect(result).toMatchObject({ statusCode: 200, responseExcerpt: 'abcde', bodyEnd: 'complete' })
  })

  test('bytes that are not text are reported as text that PostgreSQL accepts', async () => {
    const { result } = await send({ kind: 'status', status: 500, body: Buffer.from([0x61, 0, 0xff]) })
    expect(result).toMatchObject({ responseExcerpt: 'a\uFFFD\uFFFD' })
  })
})

describe('a success counts by its status line, not by its body', () => {
  test('a body of 16 KiB is read completely and the connection reused; one byte more is cut', async () => {
    const body = 'a'.repeat(16_384)
    const { result } = await send({ kind: 'status', status: 200, body })
    expect(result).toMatchObject({ bodyEnd: 'complete', responseExcerpt: 'a'.repeat(1024) })
    await receiver.close()
    const over = await send({ kind: 'status', status: 200, body: `${body}a` })
    expect(over.result).toMatchObject({ statusCode: 200, bodyEnd: 'cut', responseExcerpt: 'a'.repeat(1024) })
    expect(over.sender.idleConnectionCount()).toBe(0)
  })

  test('a body of 10 GB is cut after a few KB', async () => {
    const { result } = await send({ kind: 'endless' })
    expect(result).toMatchObject({ statusCode: 200, bodyEnd: 'cut' })
    await expect.poll(() => receiver.openConnectionCount()).toBe(0)
    expect(receiver.bytesPoured()).toBeLessThan(50_000_000)
  })

  test('a gzip bomb is not decompressed', async () => {
    const { result } = await send({ kind: 'gzip-bomb' })
    expect(result).toMatchObject({
      statusCode: 200,
      bodyEnd: 'complete',
      responseHeaders: { 'content-encoding': 'gzip' },
    })
    expect(result.outcome === 'response' && result.responseExcerpt.length).toBeLessThanOrEqual(1024)
    expect(receiver.requests[0]!.headers['accept-encoding']).toBe('identity')
  })

  test('a slow body is cut at the deadline', async () => {
    const { result, sender } = await send({ kind: 'drip', intervalMs: 10 }, { totalTimeoutMs: 600 })
    expect(result).toMatchObject({ outcome: 'response', statusCode: 200, bodyEnd: 'deadline' })
    expect(result.durationMs).toBeGreaterThanOrEqual(590)
    expect(sender.idleConnectionCount()).toBe(0)
    await expect.poll(() => receiver.openConnectionCount()).toBe(0)
  })

  test('a reset within the body keeps the status', async () => {
    const { result } = await send({ kind: 'reset-mid-body' })
    expect(result).toMatchObject({ outcome: 'response', statusCode: 200, bodyEnd: 'broken' })
  })
})

describe('no answer', () => {
  test('no answer is a timeout at the deadline, without a retry', async () => {
    const { result } = await send({ kind: 'hang' }, { totalTimeoutMs: 1_000 })
    expect(result).toMatchObject({ outcome: 'error', errorClass: 'timeout', errorCode: 'NO_RESPONSE_IN_TIME' })
    expect(receiver.requests).toHaveLength(1)
  })

  test.each([
    'HTTP/1.1 200 OK\r\nx-a: ',
    'HTTP/1.1 100 Continue\r\n',
    `HTTP/1.1 100 ${'x'.repeat(20_000)}`,
    'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100),
  ])('headers that do not end are a timeout: %.24j', async (bytes) => {
    const { result } = await send({ kind: 'raw', bytes }, { totalTimeoutMs: 500 })
    expect(result).toMatchObject({ errorClass: 'timeout' })
  })

  test.each<[string, Behaviour, object]>([
    [
      'a close before the headers',
      { kind: 'close-before-headers' },
      { errorClass: 'reset', errorCode: 'CLOSED_BY_RECEIVER' },
    ],
    ['a reset before the headers', { kind: 'reset-before-headers' }, { errorClass: 'reset', errorCode: 'ECONNRESET' }],
    ['a close within the headers', { kind: 'raw', bytes: 'HTTP/1.1 20', thenClose: true }, { errorClass: 'reset' }],
    ['something that is not HTTP', { kind: 'invalid-http' }, { errorClass: 'protocol', errorCode: 'INVALID_HTTP' }],
    [
      'an unexpected 101',
      { kind: 'raw', bytes: 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n' },
      { errorClass: 'protocol', errorCode: 'UNEXPECTED_RESPONSE' },
    ],
    [
      'headers over 16 KiB',
      { kind: 'huge-headers', bytes: 17_000 },
      { errorClass: 'protocol', errorCode: 'HEADERS_TOO_LARGE' },
    ],
    [
      'more than 100 interim responses',
      { kind: 'interim', statuses: Array.from({ length: 101 }, () => 100) },
      { errorClass: 'protocol', errorCode: 'INTERIM_FLOOD' },
    ],
    [
      'interim responses of more than 64 KiB',
      { kind: 'raw', bytes: `HTTP/1.1 103 ${'x'.repeat(70_000)}` },
      { errorClass: 'protocol', errorCode: 'INTERIM_FLOOD' },
    ],
    [
      'two lengths',
      { kind: 'raw', bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab' },
      { errorClass: 'protocol' },
    ],
  ])('%s', async (_what, behaviour, expected) => {
    const { result, sender } = await send(behaviour, { totalTimeoutMs: 5_000 })
    expect(result).toMatchObject({ outcome: 'error', ...expected })
    expect(receiver.requests).toHaveLength(1)
    expect(sender.idleConnectionCount()).toBe(0)
  })

  test('endless interim responses and endless framing cost next to nothing, and hold nobody up', async () => {
    const floods = {
      INTERIM_FLOOD: 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(400_000),
      ANSWER_FLOOD: `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;${'x'.repeat(10_000_000)}`,
    }
    const before = process.threadCpuUsage()
    const interim = await send({ kind: 'raw', bytes: floods.INTERIM_FLOOD }, { totalTimeoutMs: 10_000 })
    expect(interim.result).toMatchObject({ errorClass: 'protocol', errorCode: 'INTERIM_FLOOD' })
    // The status line came, so the receiver took the POST.
    const framing = await send({ kind: 'raw', bytes: floods.ANSWER_FLOOD }, { totalTimeoutMs: 10_000 })
    expect(framing.result).toMatchObject({ statusCode: 200, bodyEnd: 'broken' })
    const { user, system } = process.threadCpuUsage(before)
    // It was 20 s for the first alone.
    expect(user + system).toBeLessThan(2_000_000)
  })

  test('headers of nearly 16 KiB are accepted', async () => {
    const { result } = await send({ kind: 'huge-headers', bytes: 16_000 })
    expect(result).toMatchObject({ statusCode: 200 })
  })
})

describe('reused connections', () => {
  test('a hundred POSTs in sequence use one connection', async () => {
    const { results } = await send({ kind: 'status', status: 200, body: 'ok' }, { count: 100 })
    expect(results.every((result) => result.outcome === 'response')).toBe(true)
    expect(receiver.connectionCount()).toBe(1)
  })

  test('a connection that the receiver closes leaves the pool, and later POSTs succeed', async () => {
    const { sender, post } = await send({
      kind: 'raw',
      bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
      thenClose: true,
    })
    await expect.poll(() => sender.idleConnectionCount()).toBe(0)
    expect(await post()).toMatchObject({ statusCode: 200 })
  })

  test('unexpected bytes end the connection instead of answering the next POST', async () => {
    const bytes = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged'
    const { result, sender, post } = await send({ kind: 'raw', bytes })
    expect(result).toMatchObject({ statusCode: 200, responseExcerpt: 'ok' })
    await expect.poll(() => sender.idleConnectionCount()).toBe(0)
    receiver.behave({ kind: 'status', status: 500, body: 'true' })
    expect(await post()).toMatchObject({ statusCode: 500, responseExcerpt: 'true' })
  })

  test('concurrent POSTs use separate connections, of which at most 256 stay open', async () => {
    const { sender, post } = await send({ kind: 'status', status: 200 })
    let open = () => {}
    receiver.behave({ kind: 'wait', until: new Promise((resolve) => (open = resolve)) })
    const running = Array.from({ length: 280 }, post)
    await receiver.waitFor(281)
    open()
    const results = await Promise.all(running)
    expect(results.every((result) => result.outcome === 'response')).toBe(true)
    expect(receiver.connectionCount()).toBe(280)
    expect(sender.idleConnectionCount()).toBe(256)
  })
})

describe('a connection that has been idle', () => {
  /** A sender whose clock is moved by hand, and a receiver that closes when it is told to. */
  async function open() {
    let nowMs = 0
    const sent = await send({ kind: 'status', status: 200, body: 'ok' }, { now: () => nowMs })
    const pass = (ms: number) => {
      nowMs += ms
    }
    return { ...sent, pass }
  }

  test('for a second is reused, for longer it is not, while nothing is known of its receiver', async () => {
    const { post, pass } = await open()
    pass(1_000)
    await post()
    expect(receiver.connectionCount()).toBe(1)
    pass(1_001)
    await post()
    expect(receiver.connectionCount()).toBe(2)
  })

  test('is not reused after half of the time after which its receiver closed another one', async () => {
    const { sender, post, pass } = await open()
    receiver.behaveNext({ kind: 'raw', bytes: 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', thenClose: true })
    pass(2_000)
    await post()
    await expect.poll(() => sender.idleConnectionCount()).toBe(1)
    pass(1)
    const before = receiver.connectionCount()
    await post()
    expect(receiver.connectionCount()).toBe(before + 1)
  })

  test('is closed in time for the limit that its receiver announces', async () => {
    const { post, pass } = await open()
    receiver.behaveNext({ kind: 'status', status: 200, headers: { 'keep-alive': 'timeout=1' }, body: 'ok' })
    await post()
    pass(500)
    await post()
    expect(receiver.connectionCount()).toBe(1)
    pass(501)
    await post()
    expect(receiver.connectionCount()).toBe(2)
  })

  test('and that was reset is one POST, and teaches that it was idle for too long', async () => {
    const { post, pass } = await open()
    pass(800)
    receiver.behaveNext({ kind: 'reset-before-headers' })
    expect(await post()).toMatchObject({ errorClass: 'reset' })
    expect(receiver.requests).toHaveLength(2)
    await post()
    pass(401)
    const before = receiver.connectionCount()
    await post()
    expect(receiver.connectionCount()).toBe(before + 1)
  })
})

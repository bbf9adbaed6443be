import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { createTestApp, type TestAnswer } from '../../test/harness/app/app.ts'
import { startCollector } from '../../test/harness/fakes/collector.ts'
import { type ReceivedRequest, startReceiver } from '../../test/harness/fakes/receiver.ts'
import { createAuthority } from '../../test/harness/fakes/tls.ts'
import { openForFile } from '../../test/harness/run/open-for-file.ts'
import { parseStoredContext } from './trace-context.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const RETRY_MS = 60_000

interface LogLine {
  msg: string
  trace_id?: string
  span_id?: string
  route?: string
  [member: string]: unknown
}

const authority = await createAuthority()
const tls = await authority.issue(['127.0.0.1'])

/** The service, a global webhook with three subscriptions on a receiver, and the log. */
async function openFixture(options: { endpoint?: string } = {}) {
  const receiver = await startReceiver({ tls })
  const lines: LogLine[] = []
  const app = await createTestApp({
    ca: authority.ca,
    logger: pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) }),
    env: {
      WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}`,
      ...(options.endpoint !== undefined && { OTEL_EXPORTER_OTLP_ENDPOINT: options.endpoint }),
    },
  })
  const made = await app.admin('POST', '/api/v3/webhook/webhook', {
    url: `${receiver.origin}/hook?token=query-value`,
    is_global: true,
  })
  const webhook = made.body.data.document_id as string
  await app.admin('POST', '/api/v3/webhook/event', { internal: 'invoice.paid' })
  const wanted = 'filters=internal%7Cin%7Caccount.create,account.find-one,invoice.paid'
  const found = await app.admin('GET', `/api/v3/webhook/event?${wanted}`)
  const events = found.body.data.map((row: { document_id: string }) => row.document_id)
  await app.admin('PUT', `/api/v3/webhook/webhook/${webhook}/events`, { events })
  const createAccount = (headers: Record<string, string>): Promise<TestAnswer> =>
    app.admin('POST', '/api/v3/identity/account', { name: 'Traced' }, headers)
  return {
    ...app,
    receiver,
    secret: made.body.data.secret as string,
    webhook,
    lines,
    findLines: (msg: string) => lines.filter((line) => line.msg === msg),
    createAccount,
    /** The POST that the change of a request with these headers causes. */
    receiveOne: async (headers: Record<string, string>): Promise<ReceivedRequest> => {
      const before = receiver.requests.length
      expect((await createAccount(headers)).status).toBe(201)
      await app.settle()
      expect(receiver.requests).toHaveLength(before + 1)
      return receiver.requests[before]!
    },
    [Symbol.asyncDispose]: async () => {
      await app[Symbol.asyncDispose]()
      await receiver.close()
    },
  }
}

const shared = await openForFile(openFixture())

/** The service that the tests without a collector share, without what the tests before have sent and logged. */
function clear() {
  shared.receiver.requests.length = 0
  shared.lines.length = 0
  return shared
}

function readTraceparent(request: ReceivedRequest | undefined): { trace: string; span: string; flags: string } {
  const match = /^00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])$/.exec(request?.headers.traceparent ?? '')
  if (!match) throw new Error(`no traceparent: ${request?.headers.traceparent}`)
  return { trace: match[1]!, span: match[2]!, flags: match[3]! }
}

describe('the trace of a request', () => {
  test('continues at the subscriber with a span of each attempt, its flag and its tracestate, and is in the log', async () => {
    const fixture = clear()
    fixture.receiver.behaveNext({ kind: 'status', status: 500 })
    const first = await fixture.receiveOne({ traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=1, b=2' })
    await fixture.clock.advance(RETRY_MS)
    await fixture.settle()
    const attempts = [first, fixture.receiver.requests[1]].map(readTraceparent)
    expect(attempts.map(({ trace, flags }) => [trace, flags])).toEqual([
      [TRACE, '01'],
      [TRACE, '01'],
    ])
    expect(fixture.receiver.requests.map(({ headers }) => headers.tracestate)).toEqual(['a=1,b=2', 'a=1,b=2'])
    const request = fixture.findLines('request').find((line) => line.trace_id === TRACE)
    expect(request?.route).toBe('/api/v3/identity/account')
    expect(new Set([SPAN, request?.span_id, ...attempts.map(({ span }) => span)]).size).toBe(4)
    expect(fixture.findLines('attempt').map((line) => line.trace_id)).toEqual([TRACE, TRACE])
  })

  test('continues from a read that has a subscriber, and from a published event', async () => {
    const fixture = clear()
    const made = await fixture.createAccount({})
    await fixture.settle()
    const headers = { traceparent: `00-${TRACE}-${SPAN}-01` }
    await fixture.admin('GET', `/api/v3/identity/account/${made.body.data.document_id}`, undefined, headers)
    const published = { event: 'invoice.paid', account: null, id: 'inv-1' }
    expect((await fixture.admin('POST', '/api/v3/webhook/publish', published, headers)).status).toBe(202)
    await fixture.settle()
    const traced = fixture.receiver.requests.filter((request) => readTraceparent(request).trace === TRACE)
    expect(traced.map((request) => request.headers['x-service-event']).sort()).toEqual([
      'account.find-one',
      'invoice.paid',
    ])
  })

  test('that is not sampled stays unsampled', async () => {
    const fixture = clear()
    const request = await fixture.receiveOne({ traceparent: `00-${TRACE}-${SPAN}-00` })
    expect(readTraceparent(request)).toMatchObject({ trace: TRACE, flags: '00' })
    expect(request.headers).not.toHaveProperty('tracestate')
  })

  test('is new when the headers are invalid, which are not logged, stored or sent', async () => {
    await using fixture = await openFixture()
    const hostile = [
      { traceparent: `ff-${TRACE}-${SPAN}-01`, tracestate: 'evil=1' },
      { traceparent: `00-${TRACE.toUpperCase()}-${SPAN}-01`, tracestate: 'evil=1' },
      { traceparent: `00-${'0'.repeat(32)}-${SPAN}-01`, tracestate: 'evil=1' },
      { traceparent: `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`, tracestate: 'evil=1' },
      { traceparent: "' or 1=1 --", tracestate: 'evil=1' },
      { traceparent: 'x'.repeat(10_000), tracestate: 'evil=1' },
      { tracestate: 'evil=1' },
    ]
    const traces = new Set<string>()
    for (const headers of hostile) {
      const request = await fixture.receiveOne(headers)
      traces.add(readTraceparent(request).trace)
      expect(request.headers).not.toHaveProperty('tracestate')
    }
    expect(traces.size).toBe(hostile.length)
    expect(traces).not.toContain(TRACE)
    const rows = await fixture.database.db.selectFrom('event_occurrence').select('trace_context').execute()
    const stored = rows.map((row) => parseStoredContext(row.trace_context ?? ''))
    expect(stored.length).toBeGreaterThanOrEqual(hostile.length)
    expect(JSON.stringify([rows, stored, fixture.lines])).not.toMatch(/evil|or 1=1|xxxx|4bf92f3577b34da6/i)
  })

  test('continues without an invalid tracestate', async () => {
    const fixture = clear()
    const request = await fixture.receiveOne({ traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=1,a=2' })
    expect(readTraceparent(request).trace).toBe(TRACE)
    expect(request.headers).not.toHaveProperty('tracestate')
  })

  test('is not part of the signed body', async () => {
    const fixture = clear()
    const request = await fixture.receiveOne({ traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=1' })
    const body = JSON.parse(request.body.toString())
    expect(Object.keys(body)).toEqual(['id', 'type', 'api_version', 'created_at', 'attempt', 'data'])
    expect(request.body.toString()).not.toContain(TRACE)
  })

  test('is in the log line of every request, also of refused ones', async () => {
    const fixture = clear()
    await fixture.anonymous('GET', '/api/v3/health')
    await fixture.anonymous('GET', '/api/v3/webhook/webhook')
    await fixture.anonymous('GET', '/nothing/here')
    await fixture.anonymous('GET', '/api/v3/webhook/webhook/%00')
    const ids = fixture.findLines('request').map((line) => line.trace_id)
    expect(ids).toHaveLength(4)
    expect(new Set(ids).size).toBe(4)
    expect(ids.every((id) => /^[0-9a-f]{32}$/.test(id ?? ''))).toBe(true)
  })
})

describe('a delivery without a request', () => {
  test('has one trace for all attempts of a test delivery: the id of its event', async () => {
    const fixture = clear()
    fixture.receiver.behaveNext({ kind: 'status', status: 500 })
    await fixture.admin('POST', `/api/v3/webhook/webhook/${fixture.webhook}/test`, undefined, {
      traceparent: `00-${TRACE}-${SPAN}-01`,
    })
    await fixture.settle()
    await fixture.clock.advance(RETRY_MS)
    await fixture.settle()
    const [first, second] = fixture.receiver.requests
    const event = first?.headers['webhook-id']?.replaceAll('-', '')
    expect([readTraceparent(first).trace, readTraceparent(second).trace]).toEqual([event, event])
    expect(readTraceparent(first).span).not.toBe(readTraceparent(second).span)
  })
})

describe('with a collector', () => {
  test('the attempt is a child of the request, which is a child of the caller', async () => {
    await using collector = await startCollector()
    await using fixture = await openFixture({ endpoint: collector.origin })
    fixture.receiver.behaveNext({ kind: 'status', status: 503 })
    const received = await fixture.receiveOne({ traceparent: `00-${TRACE}-${SPAN}-01`, 'x-request-id': 'request-1' })
    await fixture.app.stop()
    const spans = collector.spans.filter((span) => span.traceId === TRACE)
    const request = spans.find((span) => span.name === 'POST /api/v3/identity/account')
    const attempt = spans.find((span) => span.name === 'webhook.attempt')
    expect(spans).toHaveLength(2)
    expect(request).toMatchObject({
      parentSpanId: SPAN,
      statusCode: 0,
      attributes: {
        'http.request.method': 'POST',
        'http.route': '/api/v3/identity/account',
        'http.response.status_code': 201,
        'signalbox.request_id': 'request-1',
      },
    })
    expect(request?.attributes).not.toHaveProperty('error.type')
    expect(attempt).toMatchObject({
      spanId: readTraceparent(received).span,
      parentSpanId: request?.spanId,
      statusCode: 2,
      attributes: {
        'http.request.method': 'POST',
        'signalbox.event': 'account.create',
        'signalbox.event_id': received.headers['webhook-id'],
        'signalbox.webhook': fixture.webhook,
        'signalbox.dispatch': received.headers['x-service-delivery'],
        'signalbox.attempt': 1,
        'signalbox.trigger': 'schedule',
        'http.response.status_code': 503,
        'error.type': 'http_5xx',
      },
    })
  })

  test('a new trace is sampled, and an unsampled trace of a caller is not exported', async () => {
    await using collector = await startCollector()
    await using fixture = await openFixture({ endpoint: collector.origin })
    const quiet = await fixture.receiveOne({ traceparent: `00-${TRACE}-${SPAN}-00` })
    const made = await fixture.receiveOne({})
    await fixture.app.stop()
    expect(readTraceparent(quiet).flags).toBe('00')
    expect(readTraceparent(made).flags).toBe('01')
    const names = (trace: string) => collector.spans.filter((span) => span.traceId === trace).map((span) => span.name)
    expect(names(TRACE)).toEqual([])
    expect(names(readTraceparent(made).trace).sort()).toEqual(['POST /api/v3/identity/account', 'webhook.attempt'])
  })

  test('a refused request is not a server error, and has the code of its problem', async () => {
    await using collector = await startCollector()
    await using fixture = await openFixture({ endpoint: collector.origin })
    await fixture.anonymous('GET', '/api/v3/webhook/webhook', undefined, { traceparent: `00-${TRACE}-${SPAN}-01` })
    await fixture.app.stop()
    const [span] = collector.spans.filter(({ traceId }) => traceId === TRACE)
    expect(span).toMatchObject({
      name: 'GET /api/v3/webhook/webhook',
      statusCode: 0,
      attributes: { 'http.response.status_code': 401, 'signalbox.problem_code': 'unauthenticated' },
    })
    expect(span?.attributes).not.toHaveProperty('error.type')
  })

  test('spans contain no body, secret, token, URL or query', async () => {
    await using collector = await startCollector()
    await using fixture = await openFixture({ endpoint: collector.origin })
    await fixture.receiveOne({})
    await fixture.anonymous('POST', '/api/v3/auth/login/local?next=query-value', {
      email: 'a@b.example',
      password: 'p4ssw0rd',
    })
    await fixture.anonymous('GET', '/nothing/query-value?query-value')
    await fixture.app.stop()
    const text = collector.bodies.join('\n')
    expect(text).toContain('webhook.attempt')
    for (const secret of [
      'Traced',
      'query-value',
      'p4ssw0rd',
      'a@b.example',
      fixture.secret,
      fixture.adminToken,
      '/hook',
    ])
      expect(text).not.toContain(secret)
  })

  test('that is down, deliveries continue', async () => {
    const gone = await startCollector()
    await gone[Symbol.asyncDispose]()
    await using fixture = await openFixture({ endpoint: gone.origin })
    const request = await fixture.receiveOne({ traceparent: `00-${TRACE}-${SPAN}-01` })
    expect(readTraceparent(request).trace).toBe(TRACE)
  })
})

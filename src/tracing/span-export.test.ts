import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { startCollector } from '../../test/harness/collector.ts'
import { buildTracesUrl, openSpanExport, QUEUE_SPANS, STOP_LIMIT_MS } from './span-export.ts'
import type { EndedSpan } from './tracer.ts'

/** How much longer than its limit a stop may take on a busy machine. */
const SLACK_MS = 1_500

function buildSpan(number: number): EndedSpan {
  return {
    name: 'work',
    kind: 'client',
    context: { traceId: 'a'.repeat(32), spanId: number.toString(16).padStart(16, '0'), isSampled: true },
    parent: { traceId: 'a'.repeat(32), spanId: 'f'.repeat(16), isSampled: true },
    startedAtMs: 1_700_000_000_123,
    durationMs: 1.5,
    attributes: { 'signalbox.event': 'contract.update', 'signalbox.attempt': 2 },
    isError: true,
  }
}

/** A log that keeps its lines. */
function keepLog() {
  const lines: Record<string, unknown>[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  return { logger, lines }
}

async function open(endpoint: string) {
  const { logger, lines } = keepLog()
  const spanExport = await openSpanExport({ endpoint, instanceId: 'here', version: '1.2.3', logger })
  if (!spanExport) throw new Error('the packages are not installed')
  return { spanExport, lines }
}

async function measure(work: Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work
  return performance.now() - startedAt
}

describe('spans', () => {
  test('arrive with their parent, times, attributes and the service they came from', async () => {
    await using collector = await startCollector()
    const { spanExport, lines } = await open(`${collector.origin}/base/`)
    spanExport.add(buildSpan(1))
    await spanExport.stop()
    expect(collector.paths).toEqual(['/base/v1/traces'])
    expect(collector.spans).toEqual([
      expect.objectContaining({
        name: 'work',
        traceId: 'a'.repeat(32),
        spanId: `${'0'.repeat(15)}1`,
        parentSpanId: 'f'.repeat(16),
        kind: 3,
        statusCode: 2,
        startTimeUnixNano: '1700000000123000000',
        endTimeUnixNano: '1700000000124500000',
        attributes: { 'signalbox.event': 'contract.update', 'signalbox.attempt': 2 },
        resource: expect.objectContaining({
          'service.name': 'signalbox',
          'service.version': '1.2.3',
          'service.instance.id': 'here',
        }),
      }),
    ])
    expect(lines).toEqual([])
  })

  test('arrive without a stop too, soon after they ended', async () => {
    await using collector = await startCollector()
    const { spanExport } = await open(collector.origin)
    spanExport.add(buildSpan(1))
    await collector.waitFor(1, 10_000)
    await spanExport.stop()
  })

  test('that end after the stop go nowhere and harm nothing', async () => {
    await using collector = await startCollector()
    const { spanExport } = await open(collector.origin)
    await spanExport.stop()
    spanExport.add(buildSpan(1))
    await spanExport.stop()
    expect(collector.spans).toEqual([])
  })
})

describe('a collector that does not work', () => {
  test('holds a stop for 2 s at most when it never answers', async () => {
    await using collector = await startCollector()
    collector.behave('hang')
    const { spanExport } = await open(collector.origin)
    spanExport.add(buildSpan(1))
    await collector.waitForRequests(1, 10_000)
    expect(await measure(spanExport.stop())).toBeLessThan(STOP_LIMIT_MS + SLACK_MS)
  })

  test('holds a stop for 2 s at most when nobody listens', async () => {
    const { origin } = await startAndStopCollector()
    const { spanExport } = await open(origin)
    spanExport.add(buildSpan(1))
    expect(await measure(spanExport.stop())).toBeLessThan(STOP_LIMIT_MS + SLACK_MS)
  })

  test('that refuses is told of once, and once more when it takes spans again', async () => {
    await using collector = await startCollector()
    collector.behave(400)
    const { spanExport, lines } = await open(collector.origin)
    for (let batch = 0; batch < 3; batch += 1) {
      for (let number = 1; number <= 512; number += 1) spanExport.add(buildSpan(number))
    }
    await collector.waitForRequests(3, 10_000)
    collector.behave('take')
    spanExport.add(buildSpan(9))
    await collector.waitFor(1, 10_000)
    await spanExport.stop()
    expect(lines.map(({ level, reason }) => [level, reason])).toEqual([
      [40, 400],
      [30, undefined],
    ])
    expect(JSON.stringify(lines)).not.toContain('127.0.0.1')
  })

  test('costs a bounded queue and no waiting: what comes while it is full is dropped', async () => {
    await using collector = await startCollector()
    collector.behave('hang')
    const { spanExport } = await open(collector.origin)
    for (let number = 1; number <= 512; number += 1) spanExport.add(buildSpan(number))
    await collector.waitForRequests(1, 10_000)
    collector.behave('take')
    for (let number = 1; number <= QUEUE_SPANS * 2; number += 1) spanExport.add(buildSpan(number))
    await spanExport.stop()
    expect(collector.spans).toHaveLength(QUEUE_SPANS)
  })
})

describe('packages that are not installed', () => {
  test('cost one warning that names the remedy, and the service goes on without an export', async () => {
    const { logger, lines } = keepLog()
    const missing = Object.assign(new Error("Cannot find package '@opentelemetry/sdk-trace-base'"), {
      code: 'ERR_MODULE_NOT_FOUND',
    })
    const options = { endpoint: 'http://127.0.0.1:1', instanceId: 'here', version: '1', logger }
    expect(await openSpanExport({ ...options, load: () => Promise.reject(missing) })).toBeUndefined()
    expect(lines).toEqual([
      expect.objectContaining({
        level: 40,
        reason: 'ERR_MODULE_NOT_FOUND',
        msg: expect.stringContaining('npm install --include=optional'),
      }),
    ])
  })
})

test.each([
  ['http://collector:4318', 'http://collector:4318/v1/traces'],
  ['http://collector:4318/', 'http://collector:4318/v1/traces'],
  ['https://collector/otlp', 'https://collector/otlp/v1/traces'],
  ['https://collector/otlp//', 'https://collector/otlp/v1/traces'],
  ['https://collector/otlp?key=1', 'https://collector/otlp/v1/traces?key=1'],
])('spans for %s go to %s', (endpoint, url) => {
  expect(buildTracesUrl(endpoint)).toBe(url)
})

async function startAndStopCollector(): Promise<{ origin: string }> {
  await using collector = await startCollector()
  return { origin: collector.origin }
}

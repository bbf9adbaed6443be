import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { startCollector } from '../../test/harness/fakes/collector.ts'
import { systemClock } from '../base/clock.ts'
import { systemRandom } from '../base/random.ts'
import { buildTracesUrl, openSpanExport, QUEUE_SPANS, type SpanExport, STOP_LIMIT_MS } from './span-export.ts'

/** Tolerance for a stop on a busy machine; without the limit of the service it takes the 10 s of the package. */
const SLACK_MS = 6_000

/** Starts spans and ends them at once. */
function makeSpans({ tracer }: SpanExport, count: number): void {
  for (let made = 0; made < count; made += 1)
    tracer.startSpan('work', { kind: 'client', attributes: {} }).end({ durationMs: 1, attributes: {}, isError: false })
}

const SERVICE = { instanceId: 'here', version: '1.2.3', clock: systemClock, random: systemRandom }

/** A log that keeps its lines. */
function keepLog() {
  const lines: Record<string, unknown>[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  return { logger, lines }
}

async function open(endpoint: string) {
  const { logger, lines } = keepLog()
  const spanExport = await openSpanExport({ ...SERVICE, endpoint, logger })
  if (!spanExport) throw new Error('the packages are not installed')
  return { spanExport, lines }
}

async function measure(work: Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work
  return performance.now() - startedAt
}

describe('spans', () => {
  test('are exported in one batch, with their service and SDK', async () => {
    await using collector = await startCollector()
    const { spanExport, lines } = await open(`${collector.origin}/base/`)
    makeSpans(spanExport, 2)
    await spanExport.stop()
    expect(collector.paths).toEqual(['/base/v1/traces'])
    expect(collector.spans.map(({ resource }) => resource)).toEqual(
      Array.from({ length: 2 }, () => ({
        'service.name': 'signalbox',
        'service.version': '1.2.3',
        'service.instance.id': 'here',
        'telemetry.sdk.name': 'opentelemetry',
        'telemetry.sdk.language': 'nodejs',
        'telemetry.sdk.version': expect.stringMatching(/^\d+\.\d+\.\d+$/),
      })),
    )
    expect(lines).toEqual([])
  })

  test('are exported soon after they end, without a stop', async () => {
    await using collector = await startCollector()
    const { spanExport } = await open(collector.origin)
    makeSpans(spanExport, 1)
    await collector.waitFor(1)
    await spanExport.stop()
  })

  test('that end after the stop are dropped without an error', async () => {
    await using collector = await startCollector()
    const { spanExport } = await open(collector.origin)
    await spanExport.stop()
    makeSpans(spanExport, 1)
    await spanExport.stop()
    expect(collector.spans).toEqual([])
  })
})

describe('a failing collector', () => {
  test('delays a stop by at most 2 s when it does not answer', async () => {
    await using collector = await startCollector()
    collector.behave('hang')
    const { spanExport } = await open(collector.origin)
    makeSpans(spanExport, 1)
    await collector.waitForRequests(1)
    expect(await measure(spanExport.stop())).toBeLessThan(STOP_LIMIT_MS + SLACK_MS)
  })

  test('delays a stop by at most 2 s when it refuses connections', async () => {
    const { origin } = await startAndStopCollector()
    const { spanExport } = await open(origin)
    makeSpans(spanExport, 1)
    expect(await measure(spanExport.stop())).toBeLessThan(STOP_LIMIT_MS + SLACK_MS)
  })

  test('is logged once when it refuses, and once when it accepts spans again', async () => {
    await using collector = await startCollector()
    collector.behave(400)
    const { spanExport, lines } = await open(collector.origin)
    makeSpans(spanExport, 3 * 512)
    await collector.waitForRequests(3)
    collector.behave('take')
    makeSpans(spanExport, 1)
    await collector.waitFor(1)
    await spanExport.stop()
    expect(lines.map(({ level, reason }) => [level, reason])).toEqual([
      [40, 400],
      [30, undefined],
    ])
    expect(JSON.stringify(lines)).not.toContain('127.0.0.1')
  })

  test('fills a bounded queue without blocking: spans beyond it are dropped', async () => {
    await using collector = await startCollector()
    collector.behave('hang')
    const { spanExport } = await open(collector.origin)
    makeSpans(spanExport, 512)
    await collector.waitForRequests(1)
    collector.behave('take')
    makeSpans(spanExport, QUEUE_SPANS * 2)
    await spanExport.stop()
    expect(collector.spans).toHaveLength(QUEUE_SPANS)
  })
})

describe('packages that are not installed', () => {
  test('are reported by one warning that names the guide, and the service runs without an export', async () => {
    const { logger, lines } = keepLog()
    const missing = Object.assign(new Error("Cannot find package '@opentelemetry/sdk-trace'"), {
      code: 'ERR_MODULE_NOT_FOUND',
    })
    const options = { ...SERVICE, endpoint: 'http://127.0.0.1:1', logger }
    expect(await openSpanExport({ ...options, load: () => Promise.reject(missing) })).toBeUndefined()
    expect(lines).toEqual([
      expect.objectContaining({
        level: 40,
        reason: 'ERR_MODULE_NOT_FOUND',
        msg: expect.stringContaining('cannot be loaded: see docs/guides/tracing.md'),
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
])('spans for %s are sent to %s', (endpoint, url) => {
  expect(buildTracesUrl(endpoint)).toBe(url)
})

async function startAndStopCollector(): Promise<{ origin: string }> {
  await using collector = await startCollector()
  return { origin: collector.origin }
}

import fc from 'fast-check'
import pino from 'pino'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type CollectedSpan, startCollector } from '../../test/harness/fakes/collector.ts'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import type { Random } from '../base/random.ts'
import { openSpanExport } from './span-export.ts'
import type { TraceContext } from './trace-context.ts'
import { buildContextTracer, type Tracer } from './tracer.ts'

const PARENT: TraceContext = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), isSampled: true, tracestate: 'k=v' }
const END = { durationMs: 7, attributes: {}, isError: false }

const ZEROS: Random = { bytes: (length) => Buffer.alloc(length) }

function countingRandom(): Random {
  let next = 0
  return {
    bytes: (length) => {
      next += 1
      return Buffer.alloc(length, next)
    },
  }
}

/** A tracer with a collector of its own, and the received spans in the order of their ends. */
async function openExporting(random: Random = countingRandom()) {
  const collector = await startCollector()
  const clock = buildManualClock()
  const logger = pino({ level: 'silent' })
  const options = { endpoint: collector.origin, instanceId: 'here', version: '1.2.3', clock, random, logger }
  const spanExport = await openSpanExport(options)
  if (!spanExport) throw new Error('the packages are not installed')
  onTestFinished(async () => {
    await spanExport.stop()
    await collector[Symbol.asyncDispose]()
  })
  const collect = async (): Promise<CollectedSpan[]> => {
    await spanExport.stop()
    return collector.spans
  }
  return { tracer: spanExport.tracer, clock, collect }
}

const BUILDERS: [string, (random?: Random) => Promise<Tracer>][] = [
  ['without an export', async (random = countingRandom()) => buildContextTracer(random)],
  ['with an export', async (random) => (await openExporting(random)).tracer],
]

describe.each(BUILDERS)('a span %s', (_, build) => {
  test('continues the trace of its parent, with an id of its own and the flag and tracestate of the parent', async () => {
    const tracer = await build()
    const sampled = tracer.startSpan('work', { kind: 'server', parent: PARENT, attributes: {} })
    const quiet = tracer.startSpan('work', { kind: 'server', parent: { ...PARENT, isSampled: false }, attributes: {} })
    expect(sampled.context).toEqual({ ...PARENT, spanId: '01'.repeat(8) })
    expect(quiet.context).toEqual({ ...PARENT, spanId: '02'.repeat(8), isSampled: false })
  })

  test('that has no parent starts a trace with the given id, else with a new one', async () => {
    const tracer = await build()
    const given = tracer.startSpan('work', { kind: 'client', traceId: 'c'.repeat(32), attributes: {} }).context
    const made = tracer.startSpan('work', { kind: 'client', attributes: {} }).context
    expect(given).toMatchObject({ traceId: 'c'.repeat(32), spanId: '01'.repeat(8) })
    expect(made).toMatchObject({ traceId: '03'.repeat(16), spanId: '02'.repeat(8) })
  })

  test('with a parent ignores the id given for a new trace', async () => {
    const tracer = await build()
    const start = { kind: 'client', parent: PARENT, traceId: 'c'.repeat(32), attributes: {} } as const
    expect(tracer.startSpan('work', start).context.traceId).toBe(PARENT.traceId)
  })

  test('has no id of zeros, even from a random source of zeros', async () => {
    const tracer = await build(ZEROS)
    const { context } = tracer.startSpan('work', { kind: 'server', attributes: {} })
    expect(context.traceId).toBe(`${'0'.repeat(31)}1`)
    expect(context.spanId).toBe(`${'0'.repeat(15)}1`)
  })
})

const hex = (length: number) =>
  fc.stringMatching(new RegExp(`^[0-9a-f]{${length}}$`)).filter((text) => /[^0]/.test(text))
const parents = fc.record(
  {
    traceId: hex(32),
    spanId: hex(16),
    isSampled: fc.boolean(),
    tracestate: fc
      .uniqueArray(fc.stringMatching(/^(?:[a-z][a-z0-9_*/-]{0,3}|[0-9]@[a-z])=[!-+]{0,2} {0,2}[>-~]{1,2}$/), {
        minLength: 1,
        maxLength: 32,
        selector: (member) => member.split('=')[0],
      })
      .map((members) => members.join(',')),
  },
  { requiredKeys: ['traceId', 'spanId', 'isSampled'] },
)

test('an export does not change the context that a span with a parent propagates', async () => {
  const exporting = (await openExporting()).tracer
  const plain = buildContextTracer(countingRandom())
  fc.assert(
    fc.property(parents, (parent) => {
      const start = { kind: 'server', parent, attributes: {} } as const
      const { spanId, ...context } = exporting.startSpan('work', start).context
      expect(context).toEqual({ ...plain.startSpan('work', start).context, spanId: undefined })
      expect(spanId).not.toBe(parent.spanId)
    }),
  )
})

test('a new trace is sampled when spans are exported, and not when they are not', async () => {
  const isSampled = (tracer: Tracer) => tracer.startSpan('work', { kind: 'server', attributes: {} }).context.isSampled
  expect(isSampled((await openExporting()).tracer)).toBe(true)
  expect(isSampled(buildContextTracer(countingRandom()))).toBe(false)
})

describe('an exported span', () => {
  test('has its parent, its tracestate, its times by the clock, and the attributes of start and end', async () => {
    const { tracer, clock, collect } = await openExporting()
    clock.set(1_700_000_000_123)
    const start = { kind: 'client', parent: PARENT, attributes: { 'signalbox.attempt': 2 } } as const
    const span = tracer.startSpan('work', start)
    clock.advance(60_000)
    span.end({ durationMs: 1.5, attributes: { 'error.type': 'timeout', 'http.route': undefined }, isError: true })
    expect(await collect()).toEqual([
      expect.objectContaining({
        name: 'work',
        traceId: PARENT.traceId,
        spanId: span.context.spanId,
        parentSpanId: PARENT.spanId,
        traceState: 'k=v',
        kind: 3,
        statusCode: 2,
        startTimeUnixNano: '1700000000123000000',
        endTimeUnixNano: '1700000000124500000',
        attributes: { 'signalbox.attempt': 2, 'error.type': 'timeout' },
      }),
    ])
  })

  test('keeps its times where the clock is near the epoch', async () => {
    const { tracer, clock, collect } = await openExporting()
    clock.set(1)
    tracer.startSpan('work', { kind: 'server', attributes: {} }).end({ ...END, durationMs: 0.25 })
    const [span] = await collect()
    expect([span?.startTimeUnixNano, span?.endTimeUnixNano]).toEqual(['1000000', '1250000'])
  })

  test('has the name of its end, and no error when the end has none', async () => {
    const { tracer, collect } = await openExporting()
    tracer.startSpan('GET', { kind: 'server', attributes: {} }).end({ ...END, name: 'GET /rows' })
    expect(await collect()).toEqual([expect.objectContaining({ name: 'GET /rows', kind: 2, statusCode: 0 })])
  })

  test('is sent once, also if it is ended repeatedly', async () => {
    const { tracer, collect } = await openExporting()
    const span = tracer.startSpan('work', { kind: 'server', attributes: {} })
    span.end(END)
    span.end({ ...END, name: 'again', isError: true })
    expect((await collect()).map(({ name, statusCode }) => [name, statusCode])).toEqual([['work', 0]])
  })

  test('belongs to a sampled trace: a span of an unsampled parent is not sent', async () => {
    const { tracer, collect } = await openExporting()
    const start = { kind: 'server', parent: { ...PARENT, isSampled: false }, attributes: {} } as const
    tracer.startSpan('quiet', start).end(END)
    tracer.startSpan('work', { ...start, parent: PARENT }).end(END)
    expect((await collect()).map(({ name }) => name)).toEqual(['work'])
  })
})

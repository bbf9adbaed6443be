import { describe, expect, test } from 'vitest'
import { buildManualClock } from '../../test/harness/manual-clock.ts'
import type { Random } from '../random.ts'
import type { TraceContext } from './trace-context.ts'
import { buildTracer, type EndedSpan } from './tracer.ts'

const PARENT: TraceContext = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), isSampled: true, tracestate: 'k=v' }
const END = { durationMs: 7, attributes: { late: 1 }, isError: false }

function countingRandom(): Random {
  let next = 0
  return {
    bytes: (length) => {
      next += 1
      return Buffer.alloc(length, next)
    },
  }
}

function build(options: { isExported: boolean; random?: Random }) {
  const exported: EndedSpan[] = []
  const clock = buildManualClock()
  const tracer = buildTracer({
    clock,
    random: options.random ?? countingRandom(),
    exportSpan: options.isExported ? (span) => exported.push(span) : undefined,
  })
  return { tracer, exported, clock }
}

describe('a span', () => {
  test('goes on in the trace of its parent, with an id of its own and what the parent carried', () => {
    const { tracer } = build({ isExported: true })
    const { context } = tracer.startSpan('work', { kind: 'server', parent: PARENT, attributes: {} })
    expect(context).toEqual({ ...PARENT, spanId: '01'.repeat(8) })
  })

  test('without a parent starts a trace: the one it is told, else a new one', () => {
    const { tracer } = build({ isExported: true })
    const told = tracer.startSpan('work', { kind: 'client', traceId: 'c'.repeat(32), attributes: {} }).context
    const made = tracer.startSpan('work', { kind: 'client', attributes: {} }).context
    expect(told).toEqual({ traceId: 'c'.repeat(32), spanId: '01'.repeat(8), isSampled: true })
    expect(made).toEqual({ traceId: '03'.repeat(16), spanId: '02'.repeat(8), isSampled: true })
  })

  test('is exported when it ends, with its parent, its start and all its attributes', () => {
    const { tracer, exported, clock } = build({ isExported: true })
    const startedAtMs = clock.now()
    const span = tracer.startSpan('work', { kind: 'server', parent: PARENT, attributes: { early: 'yes' } })
    expect(exported).toEqual([])
    span.end({ ...END, isError: true })
    expect(exported).toEqual([
      {
        name: 'work',
        kind: 'server',
        context: span.context,
        parent: PARENT,
        startedAtMs,
        durationMs: 7,
        attributes: { early: 'yes', late: 1 },
        isError: true,
      },
    ])
  })

  test('of a trace that is not sampled is not exported, and stays unsampled', () => {
    const { tracer, exported } = build({ isExported: true })
    const span = tracer.startSpan('work', { kind: 'server', parent: { ...PARENT, isSampled: false }, attributes: {} })
    span.end(END)
    expect(span.context.isSampled).toBe(false)
    expect(exported).toEqual([])
  })
})

describe('without an export', () => {
  test('a new trace is not sampled, for nobody records it; one that comes in stays as it is', () => {
    const { tracer } = build({ isExported: false })
    const made = tracer.startSpan('work', { kind: 'server', attributes: {} })
    const given = tracer.startSpan('work', { kind: 'server', parent: PARENT, attributes: {} })
    expect([made.context.isSampled, given.context.isSampled]).toEqual([false, true])
    made.end(END)
    given.end(END)
  })
})

test('an id is never zero, whatever the random source gives', () => {
  const { tracer } = build({ isExported: false, random: { bytes: (length) => Buffer.alloc(length) } })
  const { context } = tracer.startSpan('work', { kind: 'server', attributes: {} })
  expect(context.traceId).toMatch(/^0{31}1$/)
  expect(context.spanId).toMatch(/^0{15}1$/)
})

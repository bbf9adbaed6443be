import type { Random } from '../random.ts'
import type { SpanAttributes } from './span-attributes.ts'
import type { TraceContext } from './trace-context.ts'

/** `server`: a request that came in. `client`: one that went out. */
export type SpanKind = 'server' | 'client'

/** What a span starts with. */
export interface SpanStart {
  kind: SpanKind
  /** The span it is a child of, in this process or another; without one a trace starts. */
  parent?: TraceContext | undefined
  /** The id of the trace that starts when there is no parent; a random one unless given. 32 hex digits, not all zero. */
  traceId?: string
  attributes: SpanAttributes
}

/** How a span ends. */
export interface SpanEnd {
  /** Measured by the caller, in milliseconds: the clock that dates the start may be set back or moved by a test. */
  durationMs: number
  /** Added to those of the start. */
  attributes: SpanAttributes
  isError: boolean
  /** Replaces the name of the start, for what is known only at the end. */
  name?: string
}

/** A piece of work under way. */
export interface Span {
  /** The context to pass on: this trace, with this span as the parent. */
  context: TraceContext
  /** Ends the span, once. Never throws. */
  end(result: SpanEnd): void
}

/** Starts spans. Their ids exist whether anything is exported or not: log lines and headers carry them. */
export interface Tracer {
  startSpan(name: string, start: SpanStart): Span
}

/**
 * Builds the tracer of a process without an export: it makes contexts and records nothing. A trace that starts here is
 * not sampled; one that comes in keeps its flag (W3C Trace Context, 3.2.2.5.1).
 */
export function buildContextTracer(random: Random): Tracer {
  return {
    startSpan: (_name, { parent, traceId }) => {
      const spanId = makeSpanId(random)
      const context = parent
        ? { ...parent, spanId }
        : { traceId: traceId ?? makeTraceId(random), spanId, isSampled: false }
      return { context, end: () => {} }
    },
  }
}

/** A new trace id: 32 lower-case hex digits, not all zero (W3C Trace Context, 3.2.2.3). */
export function makeTraceId(random: Random): string {
  return makeId(random, 16)
}

/** A new span id: 16 lower-case hex digits, not all zero (W3C Trace Context, 3.2.2.4). */
export function makeSpanId(random: Random): string {
  return makeId(random, 8)
}

function makeId(random: Random, length: number): string {
  const id = random.bytes(length).toString('hex')
  return /[^0]/.test(id) ? id : id.replace(/0$/, '1')
}

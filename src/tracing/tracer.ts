import type { Random } from '../base/random.ts'
import type { SpanAttributes } from './span-attributes.ts'
import type { TraceContext } from './trace-context.ts'

/** `server`: an incoming request. `client`: an outgoing one. */
export type SpanKind = 'server' | 'client'

/** The start of a span. */
export interface SpanStart {
  kind: SpanKind
  /** The parent span, of this process or another; without one a new trace starts. */
  parent?: TraceContext | undefined
  /** The id of a new trace, for a span without a parent; default random. 32 hex digits, not all zero. */
  traceId?: string
  attributes: SpanAttributes
}

/** The end of a span. */
export interface SpanEnd {
  /** Measured by the caller, in milliseconds: the clock that dates the start may be set back or moved by a test. */
  durationMs: number
  /** Added to the attributes of the start. */
  attributes: SpanAttributes
  isError: boolean
  /** Replaces the name of the start, for a name that is known only at the end. */
  name?: string
}

/** A span in progress. */
export interface Span {
  /** The context to propagate: this trace, with this span as the parent. */
  context: TraceContext
  /** Ends the span, once. Never throws. */
  end(result: SpanEnd): void
}

/** Starts spans. Their ids exist also without an export, for log lines and headers. */
export interface Tracer {
  startSpan(name: string, start: SpanStart): Span
}

/** The tracer without an export: new traces are not sampled, continued ones keep their flag (W3C, 3.2.2.5.1). */
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

import type { Clock } from '../clock.ts'
import type { Random } from '../random.ts'
import type { TraceContext } from './trace-context.ts'

/** Facts about a span, named as in OpenTelemetry's conventions; our own start with `signalbox.`. Never a body or a secret. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** `server`: a request that came in. `client`: one that went out. */
export type SpanKind = 'server' | 'client'

/** A piece of work that has ended, as it is exported. */
export interface EndedSpan {
  name: string
  kind: SpanKind
  context: TraceContext
  /** Absent for the first span of a trace. */
  parent: TraceContext | undefined
  /** Milliseconds since the Unix epoch. */
  startedAtMs: number
  durationMs: number
  attributes: SpanAttributes
  isError: boolean
}

/** A piece of work in flight. */
export interface Span {
  /** What goes on to others: this trace, with this span as the parent. */
  context: TraceContext
  /** Ends it, once. `durationMs` is measured where the work is done; our clock may be moved by hand. */
  end(result: { durationMs: number; attributes: SpanAttributes; isError: boolean }): void
}

/** What a span starts with. */
export interface SpanStart {
  kind: SpanKind
  /** The span it is a child of, here or in another program; without one a trace starts. */
  parent?: TraceContext | undefined
  /** The id of the trace that starts when there is no parent; a random one unless given. 32 hex digits, not all zero. */
  traceId?: string
  attributes: SpanAttributes
}

/** Starts spans. Their ids exist whether anything is exported or not: log lines and headers carry them. */
export interface Tracer {
  startSpan(name: string, start: SpanStart): Span
}

/**
 * Builds the tracer. Spans that are sampled go to `exportSpan` when they end; without it they go nowhere. A trace that
 * starts here is sampled exactly when it is exported; one that comes in stays as it is (W3C Trace Context, 3.2.2.5.1).
 */
export function buildTracer(deps: {
  clock: Pick<Clock, 'now'>
  random: Random
  exportSpan: ((span: EndedSpan) => void) | undefined
}): Tracer {
  const { clock, random, exportSpan } = deps
  return {
    startSpan: (name, { kind, parent, traceId, attributes }) => {
      const spanId = makeId(random, 8)
      const context = parent
        ? { ...parent, spanId }
        : { traceId: traceId ?? makeId(random, 16), spanId, isSampled: exportSpan !== undefined }
      if (!exportSpan || !context.isSampled) return { context, end: () => {} }
      const startedAtMs = clock.now()
      return {
        context,
        end: (result) =>
          exportSpan({
            name,
            kind,
            context,
            parent,
            startedAtMs,
            durationMs: result.durationMs,
            attributes: { ...attributes, ...result.attributes },
            isError: result.isError,
          }),
      }
    },
  }
}

/** Random bytes as hex; an id of zeros would stand for none (W3C Trace Context, 3.2.2.3). */
function makeId(random: Random, length: number): string {
  const id = random.bytes(length).toString('hex')
  return /[^0]/.test(id) ? id : id.replace(/0$/, '1')
}

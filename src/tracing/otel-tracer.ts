import type * as Api from '@opentelemetry/api'
import type { IdGenerator } from '@opentelemetry/sdk-trace'
import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { TraceContext } from './trace-context.ts'
import { makeSpanId, makeTraceId, type SpanEnd, type SpanStart, type Tracer } from './tracer.ts'

/** Generates the ids of the SDK's spans from our random source. */
export interface SpanIds extends IdGenerator {
  /** Runs `start`; a trace started in it has this id. */
  withTraceId<T>(traceId: string | undefined, start: () => T): T
}

/** Builds the ids of a provider. The SDK asks inside `startSpan`, so the trace's id is kept for that call. */
export function buildSpanIds(random: Random): SpanIds {
  let given: string | undefined
  return {
    generateSpanId: () => makeSpanId(random),
    generateTraceId: () => given ?? makeTraceId(random),
    withTraceId: (traceId, start) => {
      given = traceId
      try {
        return start()
      } finally {
        given = undefined
      }
    },
  }
}

export interface OtelTracerDeps {
  api: typeof Api
  /** The tracer of a provider with the id generator `ids`. It samples and records. */
  tracer: Api.Tracer
  ids: SpanIds
  clock: Pick<Clock, 'now'>
}

/** Builds a tracer of OpenTelemetry spans. Parents are explicit: no context manager is registered. */
export function buildOtelTracer({ api, tracer, ids, clock }: OtelTracerDeps): Tracer {
  const kinds = { server: api.SpanKind.SERVER, client: api.SpanKind.CLIENT }
  return {
    startSpan: (name, start) => {
      const startedAtMs = clock.now()
      const options = { kind: kinds[start.kind], startTime: toHrTime(startedAtMs), attributes: { ...start.attributes } }
      const parent = buildParentContext(api, start)
      const span = ids.withTraceId(start.traceId, () => tracer.startSpan(name, options, parent))
      return {
        context: readContext(api, span.spanContext()),
        end: (result) => endSpan(api, span, { ...result, endedAtMs: startedAtMs + result.durationMs }),
      }
    },
  }
}

/** Every parent comes from a header or a column, so it is remote for the sampler. */
function buildParentContext(api: typeof Api, { parent }: SpanStart): Api.Context {
  if (!parent) return api.ROOT_CONTEXT
  const { traceId, spanId, isSampled, tracestate } = parent
  return api.trace.setSpanContext(api.ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: isSampled ? api.TraceFlags.SAMPLED : api.TraceFlags.NONE,
    isRemote: true,
    ...(tracestate !== undefined && { traceState: api.createTraceState(tracestate) }),
  })
}

function readContext(api: typeof Api, { traceId, spanId, traceFlags, traceState }: Api.SpanContext): TraceContext {
  return {
    traceId,
    spanId,
    isSampled: (traceFlags & api.TraceFlags.SAMPLED) !== 0,
    ...(traceState && { tracestate: traceState.serialize() }),
  }
}

function endSpan(api: typeof Api, span: Api.Span, result: SpanEnd & { endedAtMs: number }): void {
  if (!span.isRecording()) return
  if (result.name !== undefined) span.updateName(result.name)
  span.setAttributes({ ...result.attributes })
  if (result.isError) span.setStatus({ code: api.SpanStatusCode.ERROR })
  span.end(toHrTime(result.endedAtMs))
}

/** Seconds and nanoseconds since the Unix epoch. The SDK reads a small number, but not a pair, as `performance.now()`. */
function toHrTime(ms: number): Api.HrTime {
  const seconds = Math.floor(ms / 1_000)
  return [seconds, Math.floor((ms - seconds * 1_000) * 1e6)]
}

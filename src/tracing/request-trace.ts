import type { RequestTraceStart } from './request-span.ts'
import type { SpanAttributes } from './span-attributes.ts'
import { formatTraceContext, parseTraceContext } from './trace-context.ts'
import type { Tracer } from './tracer.ts'

/**
 * Continues the trace of a request's headers, or starts a new one. Span names and attributes follow OpenTelemetry's
 * conventions for HTTP server spans, without `url.*`, because path and query may contain ids and secrets. A 4xx is not a
 * server error, so only a 5xx has an `error.type`.
 */
export function buildRequestTraceStart(tracer: Tracer): RequestTraceStart {
  return ({ method, requestId, headers }) => {
    const parent = parseTraceContext({
      traceparent: readHeader(headers.traceparent),
      tracestate: readHeader(headers.tracestate),
    })
    const isKnown = KNOWN_METHODS.has(method)
    const spanMethod = isKnown ? method : 'HTTP'
    const span = tracer.startSpan(spanMethod, {
      kind: 'server',
      parent,
      attributes: { ...describeMethod(method, isKnown), 'signalbox.request_id': requestId },
    })
    return {
      traceId: span.context.traceId,
      spanId: span.context.spanId,
      stored: formatTraceContext(span.context),
      end: ({ route, status, code, durationMs }) =>
        span.end({
          durationMs,
          attributes: {
            'http.response.status_code': status,
            'http.route': route ?? undefined,
            'error.type': status >= 500 ? (code ?? String(status)) : undefined,
            'signalbox.problem_code': code,
          },
          isError: status >= 500,
          ...(route !== null && { name: `${spanMethod} ${route}` }),
        }),
    }
  }
}

/** The methods that a span's name may contain: RFC 9110 section 9, and RFC 5789. Routes have no other. */
const KNOWN_METHODS = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE'])

function describeMethod(method: string, isKnown: boolean): SpanAttributes {
  return isKnown
    ? { 'http.request.method': method }
    : { 'http.request.method': '_OTHER', 'http.request.method_original': method }
}

/** Node joins repeated headers; only a few other names are lists. */
function readHeader(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value
}

import type { RequestTraceStart } from '../http/request-trace.ts'
import { formatTraceContext, parseTraceContext } from './trace-context.ts'
import type { Tracer } from './tracer.ts'

/**
 * Starts the trace of each request for the shell: the one its headers name, else a new one. The span says which route
 * was asked for and how it ended; of the path, which may hold ids, and of the query it says nothing.
 */
export function buildRequestTraceStart(tracer: Tracer): RequestTraceStart {
  return ({ method, requestId, headers }) => {
    const parent = parseTraceContext({
      traceparent: readHeader(headers.traceparent),
      tracestate: readHeader(headers.tracestate),
    })
    const span = tracer.startSpan('http.server', {
      kind: 'server',
      parent,
      attributes: { 'http.request.method': method, 'signalbox.request_id': requestId },
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
            ...(route !== null && { 'http.route': route }),
            ...(code !== undefined && { 'error.type': code }),
          },
          isError: status >= 500,
        }),
    }
  }
}

/** Node joins a header that came more than once; only a few names, none of ours, come as a list. */
function readHeader(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value
}

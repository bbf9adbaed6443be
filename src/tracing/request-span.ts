/** The trace of one request (W3C Trace Context), as the pipeline uses it; the app supplies the implementation. */
export interface RequestTrace {
  /** For the log line: 32 and 16 hex digits. */
  traceId: string
  spanId: string
  /** The trace context that is stored with events of this request, so that their deliveries continue the trace. */
  stored: string
  /** Ends the span. `route` is null where no route matched; `code` is the problem's. */
  end(result: { route: string | null; status: number; code: string | undefined; durationMs: number }): void
}

/** Starts or continues the trace of a request, from its headers. Never throws. */
export type RequestTraceStart = (request: {
  method: string
  requestId: string
  headers: Record<string, string | string[] | undefined>
}) => RequestTrace

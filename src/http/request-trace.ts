/** The trace of one request (W3C Trace Context), as the shell uses it. What a trace is, the app says. */
export interface RequestTrace {
  /** For the log line: 32 and 16 hex digits. */
  traceId: string
  spanId: string
  /** The text that an event of this request is stored with, so that its deliveries go on in the same trace. */
  stored: string
  /** Tells how the request ended. `route` is null where no route was found; `code` is the problem's. */
  end(result: { route: string | null; status: number; code: string | undefined; durationMs: number }): void
}

/** Starts the trace of a request, from its headers or anew. Never throws, whatever the headers hold. */
export type RequestTraceStart = (request: {
  method: string
  requestId: string
  headers: Record<string, string | string[] | undefined>
}) => RequestTrace

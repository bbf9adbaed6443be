import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { RequestTraceStart } from './request-span.ts'
import { buildRequestTraceStart } from './request-trace.ts'
import { openSpanExport } from './span-export.ts'
import { buildContextTracer, type Tracer } from './tracer.ts'

/** Traces of one process. */
export interface Tracing {
  tracer: Tracer
  startTrace: RequestTraceStart
  /** Sends the queued spans, within 2 s. Called last, when every span has ended. */
  stop(): Promise<void>
}

/** Opens tracing with an export to `endpoint` (OTEL_EXPORTER_OTLP_ENDPOINT); without one the packages are not loaded. */
export async function openTracing(options: {
  endpoint: string | undefined
  instanceId: string
  version: string
  clock: Clock
  random: Random
  logger: Logger
}): Promise<Tracing> {
  const { endpoint, random } = options
  const spanExport = endpoint === undefined ? undefined : await openSpanExport({ ...options, endpoint })
  const tracer = spanExport?.tracer ?? buildContextTracer(random)
  return { tracer, startTrace: buildRequestTraceStart(tracer), stop: async () => spanExport?.stop() }
}

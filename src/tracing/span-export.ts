import type { Attributes } from '@opentelemetry/api'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base'
import type { Logger } from 'pino'
import type { EndedSpan } from './tracer.ts'

/** How many spans wait at most; what comes while the queue is full is dropped, so a collector that is down costs memory once. */
export const QUEUE_SPANS = 4_096

/** Spans sent in one request at most, and how long the first of them waits for others. */
const BATCH_SPANS = 512
const BATCH_DELAY_MS = 1_000

/** How long one request to the collector may take, its repetitions included. */
const EXPORT_TIMEOUT_MS = 5_000

/** How long the last spans may take when the service stops. */
export const STOP_LIMIT_MS = 2_000

/** Where ended spans go. */
export interface SpanExport {
  /** Takes a span at once and never throws; it is sent later, with others. */
  add(span: EndedSpan): void
  /** Sends what waits, as far as 2 s suffice. Never rejects. */
  stop(): Promise<void>
}

/** The packages of OpenTelemetry, which are optional: they are 28 MB, and few installations export traces. */
async function importPackages() {
  const [trace, exporter, resources] = await Promise.all([
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ])
  return { ...trace, ...exporter, ...resources }
}

type Packages = Awaited<ReturnType<typeof importPackages>>

export interface SpanExportOptions {
  /** `OTEL_EXPORTER_OTLP_ENDPOINT`: the collector's base URL; spans go to `v1/traces` under it. */
  endpoint: string
  /** What tells this process from others: `service.instance.id`. */
  instanceId: string
  version: string
  logger: Logger
  /** Loads the packages; tests leave them out. */
  load?: () => Promise<Packages>
}

/**
 * Opens the export of spans over OTLP/HTTP. Undefined, after one warning, when the optional packages are not installed:
 * the service then runs as if no collector were configured. Does not contact the collector.
 */
export async function openSpanExport(options: SpanExportOptions): Promise<SpanExport | undefined> {
  const { logger } = options
  let packages: Packages
  try {
    packages = await (options.load ?? importPackages)()
  } catch (error) {
    logger.warn(
      { reason: (error as { code?: unknown } | null)?.code ?? 'unknown' },
      'OTEL_EXPORTER_OTLP_ENDPOINT is set, but the OpenTelemetry packages cannot be loaded, so no traces are exported. ' +
        'Install them with: npm install --include=optional',
    )
    return undefined
  }
  const exporter = new packages.OTLPTraceExporter({
    url: buildTracesUrl(options.endpoint),
    timeoutMillis: EXPORT_TIMEOUT_MS,
    userAgent: `Signalbox/${options.version}`,
  })
  const processor = new packages.BatchSpanProcessor(announceState(exporter, logger), {
    maxQueueSize: QUEUE_SPANS,
    maxExportBatchSize: BATCH_SPANS,
    scheduledDelayMillis: BATCH_DELAY_MS,
    exportTimeoutMillis: EXPORT_TIMEOUT_MS + 1_000,
  })
  const resource = packages.resourceFromAttributes({
    'service.name': 'signalbox',
    'service.version': options.version,
    'service.instance.id': options.instanceId,
  })
  return {
    add: (span) => processor.onEnd(toReadableSpan(span, { resource, version: options.version })),
    stop: () => within(STOP_LIMIT_MS, processor.shutdown()),
  }
}

/** `v1/traces` under the endpoint, whose own path is kept (OTLP 1.x, "OTLP/HTTP Request"). */
export function buildTracesUrl(endpoint: string): string {
  const url = new URL(endpoint)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/traces`
  return url.href
}

/** Says once when spans stop arriving, and once when they arrive again; one line a batch would flood the log. */
function announceState(exporter: SpanExporter, logger: Logger): SpanExporter {
  let isFailing = false
  return {
    shutdown: () => exporter.shutdown(),
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const hasFailed = result.code !== 0
        if (hasFailed && !isFailing)
          logger.warn(
            { reason: describeFailure(result.error) },
            'spans cannot be exported and are dropped; deliveries go on. Check the collector at OTEL_EXPORTER_OTLP_ENDPOINT',
          )
        if (!hasFailed && isFailing) logger.info('spans are exported again')
        isFailing = hasFailed
        done(result)
      }),
  }
}

/** A code or status; a message could hold what the collector answered, and the endpoint's password. */
function describeFailure(error: Error | undefined): string | number {
  return (error as { code?: string | number } | undefined)?.code ?? 'no answer'
}

type Instant = [seconds: number, nanoseconds: number]

function toInstant(ms: number): Instant {
  const seconds = Math.floor(ms / 1_000)
  return [seconds, Math.floor((ms - seconds * 1_000) * 1e6)]
}

/** Values of OpenTelemetry's API (SpanKind, SpanStatusCode), written out so that nothing is loaded for them. */
const KINDS = { server: 1, client: 2 } as const
const STATUS_UNSET = 0
const STATUS_ERROR = 2

function toReadableSpan(
  span: EndedSpan,
  service: { resource: ReadableSpan['resource']; version: string },
): ReadableSpan {
  const { context, parent } = span
  const spanContext = { traceId: context.traceId, spanId: context.spanId, traceFlags: 1 }
  return {
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => spanContext,
    ...(parent && {
      parentSpanContext: { traceId: parent.traceId, spanId: parent.spanId, traceFlags: 1, isRemote: true },
    }),
    startTime: toInstant(span.startedAtMs),
    endTime: toInstant(span.startedAtMs + span.durationMs),
    duration: toInstant(span.durationMs),
    status: { code: span.isError ? STATUS_ERROR : STATUS_UNSET },
    attributes: span.attributes as Attributes,
    links: [],
    events: [],
    ended: true,
    resource: service.resource,
    instrumentationScope: { name: 'signalbox', version: service.version },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

/** Resolves when `work` ends, however it ends, or after `limitMs`. Real time: it bounds the network and decides nothing. */
async function within(limitMs: number, work: Promise<void>): Promise<void> {
  const limit = Promise.withResolvers<void>()
  const timer = setTimeout(limit.resolve, limitMs)
  await Promise.race([work.catch(() => {}), limit.promise])
  clearTimeout(timer)
}

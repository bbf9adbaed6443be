import type { BatchSpanProcessor, SpanExporter } from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import { loadOtelPackages, type OtelPackages } from './otel-packages.ts'
import { buildOtelTracer, buildSpanIds } from './otel-tracer.ts'
import type { SpanAttributes } from './span-attributes.ts'
import type { Tracer } from './tracer.ts'

/** Limit of the queue; spans beyond it are dropped, which bounds memory while the collector is down. */
export const QUEUE_SPANS = 4_096

/** Limit of spans in one request, and the delay in which a batch collects. */
const BATCH_SPANS = 512
const BATCH_DELAY_MS = 1_000

/** Timeout of one request to the collector, retries included. */
const EXPORT_TIMEOUT_MS = 5_000

/** Timeout for the last spans when the service stops. */
export const STOP_LIMIT_MS = 2_000

/** A tracer whose ended spans are exported. */
export interface SpanExport {
  /** Queues spans when they end and sends them in batches; no call waits for the collector. */
  tracer: Tracer
  /** Sends the queued spans, within 2 s. Never rejects. */
  stop(): Promise<void>
}

export interface SpanExportOptions {
  /** `OTEL_EXPORTER_OTLP_ENDPOINT`: the collector's base URL; spans are posted to `v1/traces` under it. */
  endpoint: string
  /** `service.instance.id`: identifies this process. */
  instanceId: string
  version: string
  clock: Pick<Clock, 'now'>
  random: Random
  logger: Logger
  /** Loads the packages; tests replace it. */
  load?: () => Promise<OtelPackages>
}

/**
 * Opens the export of spans over OTLP/HTTP. Does not contact the collector. Undefined, after one warning, when the optional
 * packages are not installed: the service then runs as without a collector.
 *
 * The provider is not registered as the global one: a second app in the same process has its own. Sampler and queue are
 * set here, so that the SDK does not take them from `OTEL_*` variables that `docs/configuration.md` does not list.
 */
export async function openSpanExport(options: SpanExportOptions): Promise<SpanExport | undefined> {
  const { version, clock, random } = options
  const packages = await loadOtelPackages(options.logger, options.load)
  if (!packages) return undefined
  const { api, AlwaysOnSampler, ParentBasedSampler, TracerProvider } = packages
  const ids = buildSpanIds(random)
  const provider = new TracerProvider({
    idGenerator: ids,
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    resource: buildResource(packages, options),
    spanProcessors: [buildProcessor(packages, options)],
  })
  return {
    tracer: buildOtelTracer({ api, tracer: provider.getTracer('signalbox', version), ids, clock }),
    stop: () => within(STOP_LIMIT_MS, provider.shutdown()),
  }
}

function buildResource(packages: OtelPackages, { version, instanceId }: SpanExportOptions) {
  const attributes: SpanAttributes = {
    'service.name': 'signalbox',
    'service.version': version,
    'service.instance.id': instanceId,
  }
  return packages.defaultResource().merge(packages.resourceFromAttributes(attributes))
}

function buildProcessor(packages: OtelPackages, options: SpanExportOptions): BatchSpanProcessor {
  const exporter = new packages.OTLPTraceExporter({
    url: buildTracesUrl(options.endpoint),
    timeoutMillis: EXPORT_TIMEOUT_MS,
    userAgent: `Signalbox/${options.version}`,
  })
  return new packages.BatchSpanProcessor({
    exporter: announceState(exporter, options.logger),
    maxQueueSize: QUEUE_SPANS,
    maxExportBatchSize: BATCH_SPANS,
    scheduledDelayMillis: BATCH_DELAY_MS,
    exportTimeoutMillis: EXPORT_TIMEOUT_MS + 1_000,
  })
}

/** `v1/traces` under the endpoint, whose own path is kept (OTLP 1.x, "OTLP/HTTP Request"). */
export function buildTracesUrl(endpoint: string): string {
  const url = new URL(endpoint)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/traces`
  return url.href
}

/** Logs once when the export begins to fail, and once when it recovers; a line for each batch would flood the log. */
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
            'span export failing, spans dropped: see docs/guides/tracing.md',
          )
        if (!hasFailed && isFailing) logger.info('span export recovered')
        isFailing = hasFailed
        done(result)
      }),
  }
}

/** A code or status; a message could contain the collector's answer or the endpoint's password. */
function describeFailure(error: Error | undefined): string | number {
  return (error as { code?: string | number } | undefined)?.code ?? 'no answer'
}

/** Resolves when `work` settles, or after `limitMs` in real time, because it bounds the network. */
async function within(limitMs: number, work: Promise<void>): Promise<void> {
  const limit = Promise.withResolvers<void>()
  const timer = setTimeout(limit.resolve, limitMs)
  await Promise.race([work.catch(() => {}), limit.promise])
  clearTimeout(timer)
}

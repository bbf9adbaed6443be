import type { Logger } from 'pino'

/** The packages of OpenTelemetry, which are loaded only for an export: they are 28 MB, and few installations export traces. */
async function importPackages() {
  const [api, trace, exporter, resources] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ])
  return { api, ...trace, ...exporter, ...resources }
}

/** OpenTelemetry's API under `api`, and the exports of the SDK, the exporter and the resources. */
export type OtelPackages = Awaited<ReturnType<typeof importPackages>>

/** Loads the packages; undefined, after one warning, where they cannot be. Tests replace `load`. */
export async function loadOtelPackages(
  logger: Logger,
  load: () => Promise<OtelPackages> = importPackages,
): Promise<OtelPackages | undefined> {
  try {
    return await load()
  } catch (error) {
    logger.warn(
      { reason: (error as { code?: unknown } | null)?.code ?? 'unknown' },
      'OTEL_EXPORTER_OTLP_ENDPOINT is set, but the OpenTelemetry packages cannot be loaded: see docs/guides/tracing.md',
    )
    return undefined
  }
}

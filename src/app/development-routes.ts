import type { FastifyInstance } from 'fastify'
import { mountRoutes } from '../http/pipeline.ts'
import type { Pipeline } from '../http/pipeline-deps.ts'
import { keptMailRoutes } from '../mail/kept-mail.routes.ts'
import type { Brand } from '../pages/brand.ts'
import { sinkRoutes } from '../webhook/sink.routes.ts'
import type { SinkDeps } from '../webhook/sink.ts'
import type { Config } from './config.ts'
import { decideMailWay } from './mail-transport.ts'

/** Mounts the routes that only some environments have: the sink, and the mails that are kept. */
export function mountDevelopmentRoutes(
  server: FastifyInstance,
  parts: { config: Config; pipeline: Pipeline; sink: SinkDeps; brand: Brand },
): void {
  const { config, pipeline, sink, brand } = parts
  if (isSinkMounted(config)) mountRoutes(server, pipeline, sinkRoutes, sink)
  if (decideMailWay(config) === 'kept') mountRoutes(server, pipeline, keptMailRoutes, { brand })
}

/**
 * The sink exists in development, and in certification when its secret is set
 * (docs/contract/webhooks.md#sink-availability).
 */
function isSinkMounted(config: Config): boolean {
  if (config.appEnv === 'development') return true
  return config.appEnv === 'certification' && config.webhookSinkSecret !== undefined
}

import type { FastifyInstance } from 'fastify'
import type { Clock } from '../clock.ts'
import { buildPathProblem } from '../http/known-path.ts'
import { findForeignSign, readOrigin } from '../http/local-request.ts'
import { mountRoutes } from '../http/pipeline.ts'
import type { Pipeline } from '../http/pipeline-deps.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import { checkRoutes } from '../http/route-check.ts'
import { keptMailRoutes } from '../mail/kept-mail.routes.ts'
import type { Brand } from '../pages/brand.ts'
import { sinkRoutes } from '../webhook/sink.routes.ts'
import type { SinkDeps } from '../webhook/sink.ts'
import type { Config } from './config.ts'
import type { FeatureParts } from './features.ts'
import { decideMailWay } from './mail-transport.ts'
import { DEV_PAGES } from './pages.ts'

/** Interval between log lines about refused requests, in milliseconds. */
const REFUSAL_LOG_MS = 60_000

interface DevelopmentParts {
  config: Config
  pipeline: Pipeline
  sink: SinkDeps
  brand: Brand
  features: FeatureParts
  limiter: Pick<RateLimiter, 'limitVisit'>
  clock: Pick<Clock, 'now'>
}

/**
 * Mounts the routes that only some environments have: the sink, the mails that are kept, and the sample people. All of
 * them answer this machine only (docs/contract/configuration.md#development-routes), but for the sink of certification.
 */
export function mountDevelopmentRoutes(server: FastifyInstance, parts: DevelopmentParts): void {
  const { config, pipeline, sink, brand, features } = parts
  const isDevelopment = config.appEnv === 'development'
  if (config.appEnv === 'certification' && config.webhookSinkSecret !== undefined)
    mountRoutes(server, pipeline, sinkRoutes, sink)
  const finish = checkRoutes(server, buildLocalCheck(parts))
  if (isDevelopment) mountRoutes(server, pipeline, sinkRoutes, sink)
  if (isDevelopment) DEV_PAGES.mount(server, pipeline, features)
  if (decideMailWay(config) === 'kept') mountRoutes(server, pipeline, keptMailRoutes, { brand })
  finish()
}

/** What the start page shows in development. */
export function describeDevelopment(config: Config): { adminEmail: string; hasMails: boolean } | undefined {
  if (config.appEnv !== 'development') return undefined
  return { adminEmail: config.adminEmail, hasMails: decideMailWay(config) === 'kept' }
}

/** Refuses a request that may not come from this machine with the answer of a path that does not exist. */
function buildLocalCheck({ limiter, clock }: DevelopmentParts): Parameters<typeof checkRoutes>[1] {
  let loggedAtMs = Number.NEGATIVE_INFINITY
  return (request, reply) => {
    const sign = findForeignSign(readOrigin(request.raw))
    if (sign === undefined) return
    limiter.limitVisit(request, reply)
    if (clock.now() - loggedAtMs >= REFUSAL_LOG_MS) {
      loggedAtMs = clock.now()
      request.log.warn(
        { sign },
        'request to a route of development refused: see docs/operations.md, development routes',
      )
    }
    throw buildPathProblem()
  }
}

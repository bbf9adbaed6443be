import type { FastifyInstance } from 'fastify'
import type { Clock } from '../../base/clock.ts'
import { mountRoutes } from '../../http/pipeline/pipeline.ts'
import type { Pipeline } from '../../http/pipeline/pipeline-deps.ts'
import type { RateLimiter } from '../../http/rate-limit/rate-limit.ts'
import { findForeignSign, readOrigin } from '../../http/request/local-request.ts'
import { buildPathProblem } from '../../http/route/known-path.ts'
import { checkRoutes } from '../../http/route/route-check.ts'
import type { Brand } from '../../identity/pages/brand/brand.ts'
import { keptMailRoutes } from '../../identity/pages/kept-mail/kept-mail.routes.ts'
import type { StartPageDeps } from '../../identity/pages/sign-in/start-page.ts'
import type { ProviderApp } from '../../realtime/provider/provider-settings.ts'
import { sinkRoutes } from '../../webhook/sink/sink.routes.ts'
import type { SinkDeps } from '../../webhook/sink/sink.ts'
import type { Config } from '../config/config.ts'
import { decideMailWay } from '../part/mail-transport.ts'
import type { FeatureParts } from './feature.ts'
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
 * Mounts the routes of some environments only: the sink, the stored mails, and the sample users. They answer this
 * machine only (docs/contract/configuration.md#development-routes), except for the sink of certification.
 */
export function mountDevelopmentRoutes(server: FastifyInstance, parts: DevelopmentParts): void {
  const { config, pipeline, sink, brand, features } = parts
  const isDevelopment = config.appEnv === 'development'
  if (config.appEnv === 'certification' && config.webhookSinkSecret !== undefined)
    mountRoutes(server, pipeline, { routes: sinkRoutes, deps: sink })
  const finish = checkRoutes(server, buildLocalCheck(parts))
  if (isDevelopment) mountRoutes(server, pipeline, { routes: sinkRoutes, deps: sink })
  if (isDevelopment) DEV_PAGES.mount(server, pipeline, features)
  if (decideMailWay(config) === 'kept') mountRoutes(server, pipeline, { routes: keptMailRoutes, deps: { brand } })
  finish()
}

/** Facts of the start page in development: of the realtime server, the application that the service made itself. */
export function describeDevelopment(
  config: Config,
  { baseUrl, findRealtime }: { baseUrl: () => string; findRealtime: () => ProviderApp | undefined },
): StartPageDeps['development'] {
  if (config.appEnv !== 'development') return undefined
  const { adminEmail, realtime } = config
  const isOwn = realtime.kind === 'embedded' && realtime.keys === undefined
  const hasMails = decideMailWay(config) === 'kept'
  return { adminEmail, hasMails, baseUrl, findRealtime: () => (isOwn ? findRealtime() : undefined) }
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

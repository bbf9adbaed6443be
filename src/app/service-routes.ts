import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { CatalogueEntry } from '../catalogue/catalogue.ts'
import type { Clock } from '../clock.ts'
import { cacheFor } from '../http/cached.ts'
import { buildPathProblem } from '../http/known-path.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { holdsScrapeToken } from '../metrics/scrape-token.ts'
import { type Database, readDatabaseState } from '../postgres/database.ts'
import { registerDocs } from '../reference/docs.ts'
import { registerOpenApi } from '../reference/openapi.ts'
import { VERSION } from '../version.ts'
import { EnvelopeBody } from '../webhook/envelope.schema.ts'

/** Cache lifetime of the database check, in milliseconds: a process checks at most once in this time. */
const READINESS_LIFETIME_MS = 1_000

/** Dependencies of the routes outside the v3 tree. */
export interface ServiceRouteDeps {
  db: Database
  clock: Pick<Clock, 'now'>
  metrics: Metrics
  catalogue: readonly CatalogueEntry[]
  /** Whether the start of this process has finished. */
  hasStarted: () => boolean
  /** Whether this process was asked to stop. */
  isStopping: () => boolean
  /** The access to `/metrics` on the port of the service. */
  metricsAccess: MetricsAccess
  /** Counts a request to one of these routes; throws `rate_limited`. */
  limit: (request: FastifyRequest, reply: FastifyReply) => void
}

/** `open`: without a token. `{ token }`: with this bearer token. `closed`: the path does not exist. */
export type MetricsAccess = 'open' | 'closed' | { token: string }

/** Development needs no token; other environments need the token, and without one the path does not exist. */
export function decideMetricsAccess(config: { appEnv: string; metricsToken: string | undefined }): MetricsAccess {
  if (config.appEnv === 'development') return 'open'
  return config.metricsToken === undefined ? 'closed' : { token: config.metricsToken }
}

/**
 * Mounts the routes outside the v3 tree, which are neither catalogued nor audited: liveness, readiness and metrics, the
 * OpenAPI document and the reference. Call it before the routes are mounted: the document collects only later ones.
 */
export async function mountServiceRoutes(server: FastifyInstance, deps: ServiceRouteDeps): Promise<void> {
  const eventTypes = deps.catalogue.map(({ internal, account_scope, description }) => ({
    name: internal,
    accountScope: account_scope,
    description,
  }))
  const finish = limitRoutes(server, deps.limit)
  await registerOpenApi(server, { version: VERSION, eventTypes, envelope: EnvelopeBody })
  registerDocs(server)
  mountProbes(server, deps)
  mountMetrics(server, deps)
  finish()
}

/** Applies `limit` to all routes that are mounted until the returned function is called. */
function limitRoutes(server: FastifyInstance, limit: ServiceRouteDeps['limit']): () => void {
  let isMounting = true
  const limitRequest: onRequestHookHandler = (request, reply, done) => {
    try {
      limit(request, reply)
    } catch (error) {
      return done(error as Error)
    }
    done()
  }
  server.addHook('onRoute', (route) => {
    if (isMounting) route.onRequest = [limitRequest].concat(route.onRequest ?? [])
  })
  return () => {
    isMounting = false
  }
}

/** Liveness is constant; readiness checks the database between the start and the stop of the process. */
function mountProbes(server: FastifyInstance, { db, clock, hasStarted, isStopping }: ServiceRouteDeps): void {
  const checkDatabase = cacheFor(clock, READINESS_LIFETIME_MS, () => readDatabaseState(db))
  server.get('/livez', { schema: { hide: true } }, async () => ({ status: 'ok' }))
  server.get('/readyz', { schema: { hide: true } }, async (_request, reply) => {
    const status = isStopping() ? 'stopping' : hasStarted() ? await checkDatabase() : 'starting'
    if (status !== 'ok') reply.code(503).header('retry-after', status === 'starting' ? '1' : '5')
    return { status }
  })
}

function mountMetrics(server: FastifyInstance, { metrics, metricsAccess }: ServiceRouteDeps): void {
  if (metricsAccess === 'closed') return
  server.get('/metrics', { schema: { hide: true } }, async (request, reply) => {
    if (metricsAccess !== 'open' && !holdsScrapeToken(request.headers.authorization, metricsAccess.token))
      throw buildPathProblem()
    return reply
      .header('content-type', metrics.contentType)
      .header('cache-control', 'no-store')
      .send(await metrics.render())
  })
}

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { cacheFor } from '../../base/cached.ts'
import type { Clock } from '../../base/clock.ts'
import type { DatabaseClock } from '../../base/database-clock.ts'
import { VERSION } from '../../base/version.ts'
import type { CatalogueEntry } from '../../event/catalogue/catalogue.ts'
import { registerDocs } from '../../http/reference/docs.ts'
import { registerOpenApi } from '../../http/reference/openapi.ts'
import { findForeignSign, readOrigin } from '../../http/request/local-request.ts'
import { buildPathProblem } from '../../http/route/known-path.ts'
import { checkRoutes } from '../../http/route/route-check.ts'
import type { Metrics } from '../../operations/metrics/metrics.ts'
import { holdsScrapeToken } from '../../operations/metrics/scrape-token.ts'
import type { ReplicaState } from '../../postgres/connection/replica.ts'
import { type Database, readDatabaseState } from '../../postgres/statement/database.ts'
import { EnvelopeBody } from '../../webhook/envelope/envelope.schema.ts'

/** Cache lifetime of the database check, in milliseconds: a process checks at most once in this time. */
const READINESS_LIFETIME_MS = 1_000

export interface ServiceRouteDeps {
  db: Database
  clock: Pick<Clock, 'now'>
  metrics: Metrics
  catalogue: readonly CatalogueEntry[]
  hasStarted: () => boolean
  time?: DatabaseClock | undefined
  replica?: (() => ReplicaState) | undefined
  isStopping: () => boolean
  metricsAccess: MetricsAccess
  /** Counts a request to one of these routes; throws `rate_limited`. */
  limit: (request: FastifyRequest, reply: FastifyReply) => void
}

/** `local`: from this machine, without a token. `{ token }`: with this bearer token. `closed`: the path does not exist. */
export type MetricsAccess = 'local' | 'closed' | { token: string }

/** Development needs no token and answers this machine only; elsewhere there is no path without a token. */
export function decideMetricsAccess(config: { appEnv: string; metricsToken: string | undefined }): MetricsAccess {
  if (config.appEnv === 'development') return 'local'
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
  const finish = checkRoutes(server, deps.limit)
  await registerOpenApi(server, { version: VERSION, eventTypes, envelope: EnvelopeBody })
  registerDocs(server)
  mountProbes(server, deps)
  mountMetrics(server, deps)
  finish()
}

/** Liveness is constant; readiness checks the database between the start and the stop of the process. */
function mountProbes(server: FastifyInstance, deps: ServiceRouteDeps): void {
  const { db, clock, hasStarted, isStopping, time, replica } = deps
  const checkDatabase = cacheFor(clock, READINESS_LIFETIME_MS, () => readDatabaseState(db))
  const checkStarted = async () => {
    const state = await checkDatabase()
    return state === 'ok' && time?.verdict() === 'distrusted' ? describeSkew(time.skewMs()) : state
  }
  server.get('/livez', { schema: { hide: true } }, async () => ({ status: 'ok' }))
  server.get('/readyz', { schema: { hide: true } }, async (_request, reply) => {
    const status = isStopping() ? 'stopping' : hasStarted() ? await checkStarted() : 'starting'
    if (status !== 'ok') reply.code(503).header('retry-after', status === 'starting' ? '1' : '5')
    // Without a replica the primary reads: the process is ready.
    return { status, ...(replica && { replica: replica().status }) }
  })
}

function describeSkew(skewMs: number): string {
  return `clock of the machine is ${(Math.abs(skewMs) / 1000).toFixed(1)} s ${skewMs < 0 ? 'behind' : 'ahead of'} the database`
}

function mountMetrics(server: FastifyInstance, { metrics, metricsAccess }: ServiceRouteDeps): void {
  if (metricsAccess === 'closed') return
  server.get('/metrics', { schema: { hide: true } }, async (request, reply) => {
    const isAllowed =
      metricsAccess === 'local'
        ? findForeignSign(readOrigin(request.raw)) === undefined
        : holdsScrapeToken(request.headers.authorization, metricsAccess.token)
    if (!isAllowed) throw buildPathProblem()
    return reply
      .header('content-type', metrics.contentType)
      .header('cache-control', 'no-store')
      .send(await metrics.render())
  })
}

import type { FastifyInstance } from 'fastify'
import { sql } from 'kysely'
import type { CatalogueEntry } from './catalogue/catalogue.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { Database } from './postgres/database.ts'

/** What the routes outside the v3 tree use. */
export interface ServiceRouteDeps {
  db: Database
  metrics: Metrics
  baseUrl: () => string
  catalogue: readonly CatalogueEntry[]
}

/**
 * Mounts what is for operators and machines rather than for clients of the API: liveness, readiness and metrics (D76,
 * D77). Outside the v3 tree, so neither catalogued nor audited.
 */
export async function mountServiceRoutes(server: FastifyInstance, deps: ServiceRouteDeps): Promise<void> {
  server.get('/livez', { schema: { hide: true } }, async () => ({ status: 'ok' }))
  server.get('/readyz', { schema: { hide: true } }, async (_request, reply) => {
    const isReady = await isDatabaseReady(deps.db)
    if (!isReady) reply.code(503).header('retry-after', '5')
    return { status: isReady ? 'ok' : 'database unavailable' }
  })
  server.get('/metrics', { schema: { hide: true } }, async (_request, reply) => {
    reply.header('content-type', deps.metrics.contentType)
    return deps.metrics.render()
  })
}

async function isDatabaseReady(db: Database): Promise<boolean> {
  try {
    await sql`select 1`.execute(db)
    return true
  } catch {
    return false
  }
}

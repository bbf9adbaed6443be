import type { FastifyInstance } from 'fastify'
import type { CatalogueEntry } from '../catalogue/catalogue.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type Database, isDatabaseReady } from '../postgres/database.ts'
import { registerDocs } from '../reference/docs.ts'
import { registerOpenApi } from '../reference/openapi.ts'
import { VERSION } from '../version.ts'
import { EnvelopeBody } from '../webhook/envelope.schema.ts'

/** What the routes outside the v3 tree use. */
export interface ServiceRouteDeps {
  db: Database
  metrics: Metrics
  catalogue: readonly CatalogueEntry[]
}

/**
 * Mounts what lies outside the v3 tree and so is neither catalogued nor audited: liveness, readiness and metrics (D76,
 * D77), the OpenAPI document and the rendered reference. Before the routes: the document collects those that follow.
 */
export async function mountServiceRoutes(server: FastifyInstance, deps: ServiceRouteDeps): Promise<void> {
  const eventTypes = deps.catalogue.map(({ internal, account_scope, description }) => ({
    name: internal,
    accountScope: account_scope,
    description,
  }))
  await registerOpenApi(server, { version: VERSION, eventTypes, envelope: EnvelopeBody })
  registerDocs(server)
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

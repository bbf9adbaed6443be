import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { takesIdempotencyKey } from '../route/idempotency.ts'
import type { RouteDeclaration } from '../route/route.ts'
import { listProblemStatuses, ProblemSchema } from '../route/schema.ts'
import type { TSchema } from '../shape/schema-type.ts'
import { CONVENTIONS } from './docs-conventions.ts'
import { buildCollectedComponents, collectOperation, liftSchemas, PROBLEM_OR_PAGE } from './openapi-components.ts'
import type { OpenApiDocument } from './openapi-document.ts'
import { addLinks } from './openapi-links.ts'
import { buildWebhook, DELIVERY_HEADERS, DELIVERY_RESPONSES, type EventTypeDescription } from './openapi-webhooks.ts'
import { PARTS } from './parts.ts'

/** Registers the collector of the document. Call it before the routes are mounted: it sees only later ones. */
export async function registerOpenApi(
  server: FastifyInstance,
  options: { version: string; eventTypes: readonly EventTypeDescription[]; envelope: TSchema },
): Promise<void> {
  const { version, eventTypes, envelope } = options
  await server.register(swagger, {
    convertConstToEnum: false,
    hideUntagged: true,
    refResolver: { buildLocalReference: (json, _base, _fragment, index) => String(json.$id ?? `def-${index}`) },
    transform: ({ schema, url, route }) => ({ schema: describeRoute(schema, route.config?.route), url }),
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Signalbox',
        version,
        description: CONVENTIONS.map(({ title, text }) => `## ${title}\n\n${text}`).join('\n\n'),
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'A session token (JWT) or an API key (`sbx_...`).' },
        },
        schemas: { Envelope: envelope, Problem: ProblemSchema } as never,
        parameters: DELIVERY_HEADERS as never,
        responses: DELIVERY_RESPONSES as never,
      },
      webhooks: Object.fromEntries(eventTypes.map((eventType) => [eventType.name, buildWebhook(eventType)])) as never,
    },
  })
  // One buffer for all answers, so that answers to slow clients do not copy it.
  let document: Buffer | undefined
  server.get('/openapi.json', { schema: { hide: true } }, (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(buildOpenApiDocument(server)))
    return reply.type('application/json').header('cache-control', 'public, max-age=60').send(document)
  })
}

const IDEMPOTENCY_KEY = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: '^[!-~]+$',
  description: 'Makes repeating this request safe for 24 hours. Visible ASCII characters.',
}

const IF_MATCH = {
  type: 'string',
  description: 'The `ETag` of the row as it was read: a row that was changed since is a 412.',
}

/** Adds `Idempotency-Key`, `If-Match` and the problems of a route. For documentation only, not for validation. */
function describeRoute(schema: object, route: RouteDeclaration | undefined): Record<string, unknown> {
  if (!route) return schema as Record<string, unknown>
  const { response } = schema as { response?: Record<string, object> }
  const headers = {
    ...(takesIdempotencyKey(route) && { 'Idempotency-Key': IDEMPOTENCY_KEY }),
    ...(route.rowTag && route.method !== 'GET' && { 'If-Match': IF_MATCH }),
  }
  // Only the status of problems: `collectOperation` refers to the response that all routes share for it.
  const description = route.page ? PROBLEM_OR_PAGE : 'Problem'
  const problems = listProblemStatuses(route).map((status) => [status, { type: 'null', description }])
  return {
    ...schema,
    ...(Object.keys(headers).length > 0 && { headers: { type: 'object', properties: headers } }),
    response: { ...response, ...Object.fromEntries(problems) },
  }
}

/** The OpenAPI 3.1 document of all routes. Its order does not depend on that of their registration. */
export function buildOpenApiDocument(server: FastifyInstance): OpenApiDocument {
  const found = JSON.parse(JSON.stringify(server.swagger({ yaml: false }))) as OpenApiDocument
  const used = new Set(
    Object.values(found.paths).flatMap((item) => Object.values(item).flatMap(({ tags }) => tags ?? [])),
  )
  const events = { name: 'events', description: 'What webhooks receive: one signed POST for each event.' }
  const shared = buildCollectedComponents()
  for (const [name, schema] of Object.entries(found.components.schemas ?? {}))
    liftSchemas({ ...schema, title: name }, shared)
  // In the order of the paths: the first of two different parameters is the shared one.
  const paths = Object.entries(sortMembers(found.paths)).map(([path, item]) => {
    const operations = Object.entries(sortMembers(item))
    return [
      path,
      Object.fromEntries(operations.map(([method, operation]) => [method, collectOperation(operation, shared)])),
    ]
  })
  return {
    ...found,
    tags: [...[...used].sort().map((name) => ({ name, ...(PARTS[name] && { description: PARTS[name] }) })), events],
    paths: addLinks(Object.fromEntries(paths)),
    webhooks: sortMembers(found.webhooks),
    components: {
      ...found.components,
      schemas: sortMembers(shared.schemas),
      parameters: sortMembers({ ...found.components.parameters, ...shared.parameters }),
      responses: sortMembers({ ...found.components.responses, ...shared.responses }),
      headers: shared.headers,
    },
  }
}

function sortMembers<Value>(members: Record<string, Value>): Record<string, Value> {
  const byName = ([left]: [string, Value], [right]: [string, Value]) => (left < right ? -1 : 1)
  return Object.fromEntries(Object.entries(members).sort(byName))
}

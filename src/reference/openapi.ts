import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import type { TSchema } from 'typebox'
import { type AccountScope, isChange, type RouteDeclaration } from '../http/route.ts'
import { CONVENTIONS } from './docs-conventions.ts'

/** An event type as the document tells it. */
export interface EventTypeDescription {
  /** `webhook.create` */
  name: string
  accountScope: AccountScope
  description: string
}

/** As much of an OpenAPI 3.1 document as is read here; the rest is plain JSON. */
export interface OpenApiDocument {
  openapi: string
  info: { title: string; version: string; description?: string }
  tags: { name: string; description?: string }[]
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, { post: Operation }>
  components: Record<string, Record<string, unknown>>
}

export interface Operation {
  operationId: string
  summary?: string
  description?: string
  tags?: string[]
  parameters?: {
    name?: string
    in?: string
    required?: boolean
    description?: string
    schema?: JsonSchema
    $ref?: string
  }[]
  requestBody?: { required?: boolean; content: Record<string, { schema: JsonSchema }> }
  responses: Record<string, { description: string; content?: Record<string, { schema: JsonSchema }> }>
  security?: unknown[]
  'x-permission'?: string
}

/** A JSON Schema as far as the reference shows it. */
export interface JsonSchema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  anyOf?: JsonSchema[]
  allOf?: JsonSchema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  [keyword: string]: unknown
}

/** The parts of the v3 tree (the third segment of a path), in words. A module that a platform adds needs none. */
const TAGS: Readonly<Record<string, string>> = {
  auth: 'Signing in with a social provider or a password, sessions, and the handshake between apps of different domains.',
  contract: 'The worked example of a resource that a platform adds: owned by an account, with events and permissions.',
  health: 'Whether the service and its parts work. Public, without secrets or tenant data.',
  identity: 'People, accounts, roles, permissions and API keys.',
  oauth: 'The identity provider for external clients: clients, consent, grants, and the exchange of its tokens.',
  provisioning: 'Telling target platforms who may use them.',
  realtime: 'Channels that clients subscribe to, and who may join them.',
  webhook: 'Webhooks, their subscriptions, the catalogue of event types, and the ledger of deliveries.',
}

const header = (name: string, description: string, schema: JsonSchema = { type: 'string' }) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema,
})

/** The headers of every delivery (D60, D61), under the names they have in `components.parameters`. */
const DELIVERY_HEADERS = {
  ServiceSignature: header(
    'x-service-signature',
    '`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 over `<t>.<raw body>`, keyed with the whole secret. Refuse when `t` is over 300 s off.',
  ),
  WebhookId: header('webhook-id', 'The id of the event: the same for every attempt. Deduplicate on it.'),
  WebhookTimestamp: header('webhook-timestamp', 'The time of the attempt in Unix seconds.'),
  WebhookSignature: header(
    'webhook-signature',
    '`v1,<base64>`: the signature of Standard Webhooks, keyed with the 32 bytes that the secret encodes.',
  ),
  ServiceEvent: header('x-service-event', 'The event type, as in `type`.'),
  ServiceDelivery: header('x-service-delivery', 'The id of the dispatch.'),
  ServiceAttempt: header('x-service-attempt', 'Which POST of this dispatch it is, from 1.', {
    type: 'integer',
    minimum: 1,
  }),
  Traceparent: header(
    'traceparent',
    'W3C Trace Context: the trace of the request that caused the event, and a span of its own for each attempt.',
  ),
} as const

/** Registers the collector of the document. Before the routes: it sees only those that come after it. */
export async function registerOpenApi(
  server: FastifyInstance,
  options: { version: string; eventTypes: readonly EventTypeDescription[]; envelope: TSchema },
): Promise<void> {
  const { version, eventTypes, envelope } = options
  await server.register(swagger, {
    convertConstToEnum: false,
    hideUntagged: true,
    refResolver: { buildLocalReference: (json, _base, _fragment, index) => String(json.$id ?? `def-${index}`) },
    transform: ({ schema, url, route }) => ({ schema: describeHeaders(schema, route.config?.route), url }),
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
        schemas: { Envelope: { ...JSON.parse(JSON.stringify(envelope)), $id: undefined } },
        parameters: DELIVERY_HEADERS as never,
      },
      webhooks: Object.fromEntries(eventTypes.map((eventType) => [eventType.name, buildWebhook(eventType)])) as never,
    },
  })
  let text: string | undefined
  server.get('/openapi.json', { schema: { hide: true } }, (_request, reply) => {
    text ??= JSON.stringify(buildOpenApiDocument(server))
    return reply.type('application/json').header('cache-control', 'public, max-age=60').send(text)
  })
}

/** `Idempotency-Key` where it is taken and the headers an answer carries. For readers only: nothing here validates. */
function describeHeaders(schema: object, route: RouteDeclaration | undefined): Record<string, unknown> {
  if (!route) return schema as Record<string, unknown>
  const takesKey = isChange(route) && !route.strictRateLimit
  const key = { type: 'string', maxLength: 255, description: 'Makes repeating this request safe for 24 hours.' }
  const responses = Object.entries((schema as { response?: Record<string, object> }).response ?? {})
  return {
    ...schema,
    ...(takesKey && { headers: { type: 'object', properties: { 'Idempotency-Key': key } } }),
    response: Object.fromEntries(
      responses.map(([status, one]) => [status, { ...one, headers: listAnswerHeaders(status) }]),
    ),
  }
}

function listAnswerHeaders(status: string): Record<string, JsonSchema> {
  return {
    'X-Request-Id': { type: 'string', description: 'The id of this request.' },
    ...(status === '201' && { Location: { type: 'string', description: 'The path of what was created.' } }),
    ...(status === '401' && { 'WWW-Authenticate': { type: 'string', description: 'The scheme: Bearer.' } }),
    ...((status === '429' || status === '503') && {
      'Retry-After': { type: 'integer', description: 'Seconds until it is worth another request.' },
    }),
  }
}

/** One entry of the top-level `webhooks` section: what a subscriber receives for this event type (D62). */
function buildWebhook({ name, accountScope, description }: EventTypeDescription): { post: Operation } {
  const reach =
    accountScope === 'account'
      ? 'Goes to webhooks of the owning account and to global ones.'
      : 'Has no owner: goes to global webhooks only.'
  const parameters = Object.keys(DELIVERY_HEADERS).map((key) => ({ $ref: `#/components/parameters/${key}` }))
  const schema = {
    allOf: [{ $ref: '#/components/schemas/Envelope' }, { type: 'object', properties: { type: { const: name } } }],
  }
  return {
    post: {
      operationId: `on${`.${name}`.replace(/[.-]+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())}`,
      summary: name,
      description: `${description}\n\n${reach}`,
      tags: ['events'],
      security: [],
      parameters,
      requestBody: { required: true, content: { 'application/json': { schema } } },
      responses: {
        '2XX': { description: 'Received. Answer within 15 seconds.' },
        '3XX': { description: 'Ends the delivery as failed: redirects are never followed.' },
        default: { description: 'Anything else is tried again after 1 min, 5 min, 30 min and 2 h.' },
      },
    },
  }
}

/**
 * The OpenAPI 3.1 document of all routes, once the server is ready. The order of paths, event types and schemas does not
 * depend on the order of registration, so the copy in the repository changes only when the interface does.
 */
export function buildOpenApiDocument(server: FastifyInstance): OpenApiDocument {
  const found = JSON.parse(JSON.stringify(server.swagger({ yaml: false }))) as OpenApiDocument
  const used = new Set(
    Object.values(found.paths).flatMap((item) => Object.values(item).flatMap(({ tags }) => tags ?? [])),
  )
  const events = { name: 'events', description: 'What webhooks receive: one signed POST for each event.' }
  return {
    ...found,
    tags: [...[...used].sort().map((name) => ({ name, ...(TAGS[name] && { description: TAGS[name] }) })), events],
    paths: sortMembers(
      Object.fromEntries(Object.entries(found.paths).map(([path, item]) => [path, sortMembers(item)])),
    ),
    webhooks: sortMembers(found.webhooks),
    components: { ...found.components, schemas: sortMembers(found.components.schemas ?? {}) },
  }
}

function sortMembers<Value>(members: Record<string, Value>): Record<string, Value> {
  const byName = ([one]: [string, Value], [other]: [string, Value]) => (one < other ? -1 : 1)
  return Object.fromEntries(Object.entries(members).sort(byName))
}

import { type TSchema, Type } from 'typebox'
import { buildListQuery } from '../listing/listing.ts'
import { operationIdOf, permissionOf, type RouteDeclaration } from './route.ts'

/** A UUID in lower case (D2). */
export const UuidSchema = Type.String({
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  description: 'A UUID in lower case.',
})

/** An instant: ISO 8601 UTC with milliseconds (D2). */
export const TimestampSchema = Type.String({ format: 'date-time', description: 'ISO 8601, UTC, milliseconds.' })

/** `schema`, or null. */
export function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()])
}

/** What a person names something with: one line, not blank, no control characters. */
export function lineSchema(maxLength: number) {
  return Type.String({
    minLength: 1,
    maxLength,
    pattern: '^[^\\u0000-\\u001f\\u007f]*[^\\u0000-\\u0020\\u007f][^\\u0000-\\u001f\\u007f]*$',
    description: 'Not blank; no control characters.',
  })
}

/** The body of routes that switch a row on or off. */
export const ActiveBody = Type.Object({ is_actived: Type.Boolean() }, { additionalProperties: false })

/** The path parameter of routes on one row. */
export const IdParams = Type.Object({ id: UuidSchema })

/** The shape of every error (D4, RFC 9457). */
export const ProblemSchema = Type.Object(
  {
    type: Type.String({ format: 'uri', description: 'The page of this error.' }),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.String({ description: 'Stable; what programs decide on.' }),
    detail: Type.String({ description: 'A sentence a person can act on.' }),
    request_id: Type.String(),
    errors: Type.Optional(
      Type.Array(Type.Object({ path: Type.String(), code: Type.String(), message: Type.String() })),
    ),
  },
  { $id: 'Problem', title: 'Problem' },
)

const PaginationSchema = Type.Object({
  page_size: Type.Integer(),
  next_cursor: nullable(Type.String({ description: 'Opaque; null on the last page.' })),
  total: Type.Optional(Type.Integer({ description: 'Only with count=true.' })),
})

type SuccessSchema = TSchema | { content: Record<string, { schema: TSchema }> }

function buildSuccessSchema(route: RouteDeclaration): SuccessSchema {
  if (route.media)
    return { content: Object.fromEntries(Object.entries(route.media).map(([type, schema]) => [type, { schema }])) }
  if (route.bare) return route.data
  const message = Type.String()
  if (route.list) return Type.Object({ data: Type.Array(route.data), message, pagination: PaginationSchema })
  return Type.Object({ data: route.data, message })
}

type Node = { type?: string; properties?: Record<string, TSchema>; items?: TSchema; anyOf?: TSchema[] }

/**
 * A request's schema with every object closed: an unknown member is a 422, never silently dropped (D4). An object that
 * says `additionalProperties` itself keeps what it says; alternatives and lists are closed inside.
 */
export function closeObjects(schema: TSchema): TSchema {
  const { properties, items, anyOf } = schema as Node
  return {
    ...(properties && { additionalProperties: false }),
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, member]) => [name, closeObjects(member)])),
    }),
    ...(items && !Array.isArray(items) && { items: closeObjects(items) }),
    ...(anyOf && { anyOf: anyOf.map(closeObjects) }),
  }
}

/** Which problems a route may answer; each is described by the same schema. */
function listProblemStatuses(route: RouteDeclaration): number[] {
  const statuses = [429, 500, 503]
  if (route.access !== 'public') statuses.push(401)
  if (route.access === undefined || route.access === 'permission') statuses.push(403)
  if (route.params) statuses.push(404)
  if (route.body || route.list || route.query) statuses.push(422)
  if (route.body) statuses.push(400, 413, 415)
  if (route.method !== 'GET') statuses.push(409)
  return statuses.sort()
}

/** The Fastify schema of a route: validation, serialization and its OpenAPI operation, all from the declaration (D9). */
export function buildFastifySchema(route: RouteDeclaration): Record<string, unknown> {
  const problems = listProblemStatuses(route).map((status) => [
    status,
    {
      description: 'Problem',
      content: { 'application/problem+json': { schema: { $ref: 'Problem#' } } },
    },
  ])
  const isPublic = route.access === 'public'
  const permission = route.access === undefined || route.access === 'permission' ? permissionOf(route) : undefined
  return {
    operationId: operationIdOf(route),
    tags: [route.path.split('/')[3] ?? 'service'],
    summary: route.summary,
    description: [route.description, permission && `Needs the permission \`${permission}\`.`]
      .filter(Boolean)
      .join('\n\n'),
    ...(permission && { 'x-permission': permission }),
    security: isPublic ? [] : [{ bearer: [] }],
    ...(route.params && { params: route.params }),
    ...(route.list
      ? { querystring: buildListQuery(route.list, route.query) }
      : route.query && { querystring: closeObjects(route.query) }),
    ...(route.body && { body: closeObjects(route.body) }),
    response: {
      [route.status ?? 200]: { description: 'Success', ...buildSuccessSchema(route) },
      ...(route.also && {
        [route.also.status]: {
          description: route.also.description,
          ...Type.Object({ data: route.also.data, message: Type.String() }),
        },
      }),
      ...Object.fromEntries(problems),
    },
  }
}

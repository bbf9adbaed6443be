import { buildListQuery } from '../listing/listing.ts'
import { formatBytes, PROBLEMS, type ProblemCode } from '../problem/problem.ts'
import type { Freshness } from '../request/freshness.ts'
import { closeObjects } from '../shape/close-objects.ts'
import { type Static, type TObject, type TSchema, type TUnsafe, Type } from '../shape/schema-type.ts'
import { type CellKey, MISSING_CELLS } from './cell-key.ts'
import { FieldErrorSchema } from './field-error.schema.ts'
import { takesIdempotencyKey } from './idempotency.ts'
import { operationIdOf, permissionOf, type RouteDeclaration } from './route.ts'

/**
 * Names a schema: `name` becomes its key under `components.schemas` of the OpenAPI document, and the name of its type in a
 * generated client. Every row, every body and every part that two schemas share has a name; a name belongs to one shape.
 * The name is stored as `title`, which validation and serialization ignore.
 */
export function named<Schema extends TSchema>(name: string, schema: Schema): Schema {
  // TypeBox keeps marks in non-enumerable members, which a spread drops.
  const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema)) as Schema
  return Object.assign(copy, { title: name })
}

/** A named object (`named`). A request's objects are closed by `closeObjects`. */
export function namedObject<Members extends Parameters<typeof Type.Object>[0]>(
  name: string,
  members: Members,
  options?: Parameters<typeof Type.Object>[1],
): TObject<Members> {
  return named(name, Type.Object(members, options))
}

/** One of these words. */
export function enumSchema<const Words extends readonly string[]>(
  words: Words,
  options: { description?: string } = {},
) {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: [...words], ...options })
}

export const UUID_PATTERN = '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'

/** A UUID in lower case (docs/contract/api.md#identifiers). The pattern validates; the format is for generated clients. */
export const UuidSchema = Type.String({
  format: 'uuid',
  pattern: UUID_PATTERN,
  description: 'A UUID in lower case.',
})

/** An instant: ISO 8601 UTC with milliseconds (docs/contract/api.md#identifiers). */
export const TimestampSchema = Type.String({ format: 'date-time', description: 'ISO 8601, UTC, milliseconds.' })

/**
 * `schema`, or null, as one schema with two types. Alternatives (`anyOf`) would report a broken rule once for each, and
 * the serializer would need a validator to choose. For schemas with one `type`.
 */
export function nullable<Schema extends TSchema>(schema: Schema): TUnsafe<Static<Schema> | null> {
  const { type, enum: words } = schema as { type?: unknown; enum?: readonly string[] }
  if (typeof type !== 'string') throw new Error('only a schema with one type can be made nullable')
  return Type.Unsafe({ ...schema, type: [type, 'null'], ...(words && { enum: [...words, null] }) })
}

/** Who made and changed a row that is kept after its deletion, and when. */
export const ROW_STAMPS = {
  created_by: nullable(UuidSchema),
  updated_by: nullable(UuidSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
  deleted_at: nullable(TimestampSchema),
}

/** One line, not blank, no control characters. Linear: a text divides between the repetitions in one way. */
const LINE_PATTERN = '^ *[^\\u0000-\\u0020\\u007f][^\\u0000-\\u001f\\u007f]*$'

/** A name: one line, not blank, no control characters. */
export function lineSchema(maxLength: number) {
  return Type.String({
    minLength: 1,
    maxLength,
    pattern: LINE_PATTERN,
    description: 'Not blank; no control characters.',
  })
}

/** Whether `lineSchema` accepts a text from another source than a checked body. */
export function isLine(text: string, maxLength: number): boolean {
  return text.length <= maxLength && new RegExp(LINE_PATTERN, 'u').test(text)
}

/** The body of routes that switch a row on or off. */
export const ActiveBody = named('SetActive', Type.Object({ is_actived: Type.Boolean() }))

/** The path parameter of routes on one row. */
export const IdParams = Type.Object({ id: UuidSchema })

/** The shape of every error (docs/contract/api.md#errors, RFC 9457). */
export const ProblemSchema = named(
  'Problem',
  Type.Object({
    type: Type.String({ format: 'uri', description: 'The page of this error.' }),
    title: Type.String(),
    status: Type.Integer(),
    code: enumSchema(Object.keys(PROBLEMS) as ProblemCode[], { description: 'Stable; programs decide on it.' }),
    detail: Type.String({ description: 'An explanation for the reader, with the correction.' }),
    request_id: Type.String(),
    errors: Type.Optional(
      Type.Array(FieldErrorSchema, { description: 'Every broken rule, at most 50, of a `validation_failed`.' }),
    ),
    missing: Type.Optional(
      named(
        'MissingPermission',
        Type.Object(
          {
            what: enumSchema(['permission', 'scope', 'account', 'app_scope'], {
              description:
                '`permission`: the token does not hold it. `scope`: it holds it for some accounts, and this needs it for all. `account`: it does not hold it for this account. `app_scope`: no scope of the app opens it.',
            }),
            permission: Type.String(),
            account: Type.Optional(UuidSchema),
          },
          { description: 'Of a `permission_denied`.' },
        ),
      ),
    ),
    limit: Type.Optional(
      named(
        'ExceededLimit',
        Type.Object(
          { name: Type.String(), value: Type.Integer(), account: UuidSchema },
          { description: 'The limit of an account that the request would exceed.' },
        ),
      ),
    ),
    second_factor: Type.Optional(
      named(
        'SecondFactorHint',
        Type.Object(
          {
            challenge: Type.String({ description: 'To be sent with the proof of the second factor.' }),
            methods: Type.Array(enumSchema(['totp', 'passkey', 'recovery-code'])),
            expires_in: Type.Integer({ description: 'Lifetime of the challenge in seconds.' }),
          },
          { description: 'Of a `second_factor_required`.' },
        ),
      ),
    ),
  }),
)

const PaginationSchema = named(
  'Pagination',
  Type.Object({
    page_size: Type.Integer(),
    next_cursor: nullable(Type.String({ description: 'Opaque; null on the last page.' })),
    total: Type.Optional(Type.Integer({ description: 'Only with count=true. 10,000 stands for that many or more.' })),
    is_total_exact: Type.Optional(
      Type.Boolean({ description: 'Only with count=true: false when there are more rows than `total`.' }),
    ),
  }),
)

type SuccessSchema = TSchema | { content: Record<string, { schema: TSchema }> }

function buildSuccessSchema(route: RouteDeclaration): SuccessSchema {
  if (route.media)
    return { content: Object.fromEntries(Object.entries(route.media).map(([type, schema]) => [type, { schema }])) }
  if (route.bare) return route.data
  return route.list ? buildPageSchema(route.data) : buildAnswerSchema(route.data, route.cell)
}

/** `ContractAnswer`: one `Contract` and a message. Named after its data, where that has a name. */
function buildAnswerSchema(data: TSchema, cell?: CellKey): TSchema {
  const answer = Type.Object({ data, message: Type.String(), ...(cell?.by === 'each' && MISSING_CELLS) })
  const { title } = data as { title?: string }
  return title === undefined ? answer : named(`${title}Answer`, answer)
}

/** `ContractPage`: a list of `Contract`, a message and the pagination. */
function buildPageSchema(row: TSchema): TSchema {
  const page = Type.Object({ data: Type.Array(row), message: Type.String(), pagination: PaginationSchema })
  const { title } = row as { title?: string }
  return title === undefined ? page : named(`${title}Page`, page)
}

/** The member in which @fastify/swagger expects the description of a response. */
const RESPONSE_DESCRIPTION = 'x-response-description'

const FRESHNESS_TEXTS: Record<Freshness, string> = {
  factor: 'A user with a second factor must have proven it in the last 10 minutes.',
  'sign-in': 'The user must have signed in, or proven its second factor if it has one, in the last 10 minutes.',
}

function needsPermission(route: RouteDeclaration): boolean {
  return route.access === undefined || route.access === 'permission'
}

/** The statuses that follow from a declaration, and those of its `problems`. */
export function listProblemStatuses(route: RouteDeclaration): number[] {
  // On every route, because a path with %00 is malformed.
  const codes: ProblemCode[] = ['malformed_request', 'rate_limited', 'internal_error', 'dependency_unavailable']
  if (route.access !== 'public') codes.push('unauthenticated')
  // Every route that reads the caller is closed to an app whose scopes do not open it.
  if (route.access !== 'public' || route.readsCaller) codes.push('permission_denied')
  if (route.fresh) codes.push('fresh_factor_required')
  if (route.params) codes.push('not_found')
  // A route without a body still reads and refuses one.
  if (route.method !== 'GET') codes.push('body_too_large', 'unsupported_media_type', 'validation_failed')
  // A query shares the 16 KiB of the request's headers, and percent-encoded it may outgrow them within its schema.
  if (route.list || route.query) codes.push('validation_failed', 'headers_too_large')
  if (takesIdempotencyKey(route)) codes.push('idempotency_in_progress', 'idempotency_key_reused')
  // A repeated request whose caller no longer reaches the row of the first one.
  if (takesIdempotencyKey(route) && route.ownAccounts) codes.push('not_found')
  if (route.rowTag && route.method !== 'GET') codes.push('precondition_failed')
  codes.push(...(route.problems ?? []))
  return [...new Set(codes.map((code): number => PROBLEMS[code].status))].sort()
}

/** Whether a read answers 304 to the tag that the request has. */
export function hasNotModified({ hasEntityTag, rowTag, method }: RouteDeclaration): boolean {
  return hasEntityTag === true || (rowTag !== undefined && method === 'GET')
}

function buildNotModified(route: RouteDeclaration): Record<string, unknown> {
  if (!hasNotModified(route)) return {}
  return { 304: { [RESPONSE_DESCRIPTION]: 'The request has it already, by its `If-None-Match`.', type: 'null' } }
}

function buildRedirects({ redirect }: RouteDeclaration): Record<string, unknown> {
  if (!redirect) return {}
  const schema = {
    [RESPONSE_DESCRIPTION]: redirect.description,
    type: 'null',
    headers: { location: { type: 'string', format: 'uri' } },
  }
  return Object.fromEntries(redirect.statuses.map((status) => [status, schema]))
}

const builtSchemas = new WeakMap<RouteDeclaration, Record<string, unknown>>()

/** The Fastify schema of a route: one object for each server of a process, so that it is normalized once. */
export function findFastifySchema(route: RouteDeclaration): Record<string, unknown> {
  const schema = builtSchemas.get(route) ?? buildFastifySchema(route)
  builtSchemas.set(route, schema)
  return schema
}

function buildFastifySchema(route: RouteDeclaration): Record<string, unknown> {
  const isPublic = route.access === 'public'
  const permission = needsPermission(route) ? permissionOf(route) : undefined
  return {
    // The document describes the API; what is outside of it is for browsers and for development.
    ...(!route.path.startsWith('/api/') && { hide: true }),
    // A page takes forms alone; an API route takes them besides JSON.
    ...(route.page === true && route.takesForm && { consumes: ['application/x-www-form-urlencoded'] }),
    operationId: operationIdOf(route),
    tags: [route.path.split('/')[3] ?? 'service'],
    summary: route.summary,
    description: [
      route.description,
      route.bodyLimitBytes && `The body is at most ${formatBytes(route.bodyLimitBytes)}.`,
      route.fresh && FRESHNESS_TEXTS[route.fresh],
      permission && `Needs the permission \`${permission}\`.`,
    ]
      .filter(Boolean)
      .join('\n\n'),
    ...(permission && { 'x-permission': permission }),
    security: isPublic ? (route.readsCaller ? [{}, { bearer: [] }] : []) : [{ bearer: [] }],
    ...(route.params && { params: route.params }),
    ...(route.list
      ? { querystring: buildListQuery(route.list, route.query) }
      : route.query && { querystring: closeObjects(route.query) }),
    ...(route.body && { body: closeObjects(route.body) }),
    // Problems are not serialized by schema: src/http/reference/openapi.ts adds their statuses to the document.
    response: {
      [route.status ?? 200]: { [RESPONSE_DESCRIPTION]: 'Success', ...buildSuccessSchema(route) },
      ...buildRedirects(route),
      ...buildNotModified(route),
      ...(route.also && {
        [route.also.status]: { [RESPONSE_DESCRIPTION]: route.also.description, ...buildAnswerSchema(route.also.data) },
      }),
    },
  }
}

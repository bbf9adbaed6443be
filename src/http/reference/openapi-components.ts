import { isDeepStrictEqual } from 'node:util'
import { PROBLEMS } from '../problem/problem.ts'
import type { Header, JsonSchema, Operation, Parameter, Response } from './openapi-document.ts'

/** The parameters that many routes share, by place and name, with their names in `components.parameters`. */
const SHARED_PARAMETERS: Readonly<Record<string, string>> = {
  'path id': 'Id',
  'query page_size': 'PageSize',
  'query cursor': 'Cursor',
  'query count': 'Count',
  'header Idempotency-Key': 'IdempotencyKey',
  'header If-Match': 'IfMatch',
}

/** The headers of answers, under their own names in `components.headers`. */
const ANSWER_HEADERS: Readonly<Record<string, Header>> = {
  'X-Request-Id': { description: 'The id of this request.', schema: { type: 'string' } },
  RateLimit: {
    description: 'The remaining requests of each limit (`r`), and the seconds until its reset (`t`).',
    schema: { type: 'string' },
  },
  'RateLimit-Policy': { description: 'Each limit (`q`) and its window in seconds (`w`).', schema: { type: 'string' } },
  Location: { description: 'The path of the created resource.', schema: { type: 'string' } },
  'Idempotency-Replayed': {
    description: '`true` when this is the first answer again, and nothing else was done.',
    schema: { type: 'string', const: 'true' },
  },
  'Retry-After': { description: 'Seconds until a retry.', schema: { type: 'integer' } },
  'WWW-Authenticate': { description: 'The scheme: Bearer.', schema: { type: 'string' } },
}

const PAGE_TYPE = 'text/html'

/** The description of a collected operation whose problems a browser sees as pages. */
export const PROBLEM_OR_PAGE = 'Problem or page'

/** On every answer. */
const COMMON_HEADERS = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy']

const refer = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` })

function referHeaders(names: readonly string[]): Record<string, Header> {
  return Object.fromEntries(names.map((name) => [name, refer('headers', name)]))
}

/** The shared parts that were found so far. */
export interface CollectedComponents {
  schemas: Record<string, JsonSchema>
  parameters: Record<string, Parameter>
  responses: Record<string, Response>
  headers: Record<string, Header>
}

/** Builds an empty collection of shared parts. */
export function buildCollectedComponents(): CollectedComponents {
  return { schemas: {}, parameters: {}, responses: {}, headers: { ...ANSWER_HEADERS } }
}

/**
 * Replaces the shared parts of an operation by references, and collects them for `components`: named schemas, the
 * parameters of lists, the responses of problems and the headers of answers.
 */
export function collectOperation(operation: Operation, components: CollectedComponents): Operation {
  const { parameters, requestBody, responses, ...rest } = liftSchemas(operation, components)
  const shared = parameters?.map((parameter) => shareParameter(parameter, components))
  const takesKey = shared?.some(({ $ref }) => $ref?.endsWith('/IdempotencyKey')) ?? false
  return {
    ...rest,
    ...(shared && { parameters: shared }),
    ...(requestBody && { requestBody: describeOptionalBody(requestBody) }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [
        status,
        /^[45]\d\d$/.test(status)
          ? shareProblem({ status: Number(status), isPage: response.description === PROBLEM_OR_PAGE }, components)
          : addHeaders(response, { status, takesKey }),
      ]),
    ),
  }
}

/** Replaces named schemas by references, from the inside out. Throws when two different ones share a name. */
export function liftSchemas<Node>(node: Node, components: CollectedComponents): Node {
  if (typeof node !== 'object' || node === null) return node
  if (Array.isArray(node)) return node.map((entry) => liftSchemas(entry, components)) as Node
  const members = Object.entries(node).map(([key, member]) => [key, liftSchemas(member, components)])
  const lifted = addEnumType(Object.fromEntries(members))
  return (typeof lifted.title === 'string' ? nameSchema(lifted, components) : lifted) as Node
}

function nameSchema({ title, ...schema }: JsonSchema, { schemas }: CollectedComponents): JsonSchema {
  const name = String(title)
  const isNullable = Array.isArray(schema.type) && schema.type.includes('null')
  const definition = isNullable ? withoutNull(schema) : schema
  const before = schemas[name]
  if (before && !isDeepStrictEqual(before, definition))
    throw new Error(`two different schemas are named ${name}: rename one of them in its *.schema.ts`)
  schemas[name] = definition
  return isNullable ? { anyOf: [refer('schemas', name), { type: 'null' }] } : refer('schemas', name)
}

/** Keeps a parameter inline that differs from the shared one. */
function shareParameter(parameter: Parameter, { parameters }: CollectedComponents): Parameter {
  const name = SHARED_PARAMETERS[`${parameter.in} ${parameter.name}`]
  if (name === undefined) return parameter
  parameters[name] ??= parameter
  return isDeepStrictEqual(parameters[name], parameter) ? refer('parameters', name) : parameter
}

function shareProblem(problem: { status: number; isPage: boolean }, { responses }: CollectedComponents): Response {
  const { name, response } = buildProblemResponse(problem)
  responses[name] ??= response
  return refer('responses', name)
}

/** Compares enums without their type, which requests leave out and answers have. */
function addEnumType(schema: JsonSchema): JsonSchema {
  const isText = Array.isArray(schema.enum) && schema.enum.every((value) => typeof value === 'string')
  return isText && schema.type === undefined ? { type: 'string', ...schema } : schema
}

function withoutNull(schema: JsonSchema): JsonSchema {
  const [type = 'null', ...others] = [schema.type ?? []].flat().filter((item) => item !== 'null')
  return {
    ...schema,
    type: others.length > 0 ? [type, ...others] : type,
    ...(schema.enum && { enum: schema.enum.filter((value) => value !== null) }),
  }
}

function describeOptionalBody(body: NonNullable<Operation['requestBody']>): NonNullable<Operation['requestBody']> {
  const isNull = ({ type }: JsonSchema) => type === 'null'
  const contents = Object.entries(body.content).map(([mediaType, { schema }]) => {
    const [only, ...others] = schema.anyOf?.some(isNull) ? schema.anyOf.filter((item) => !isNull(item)) : []
    return { mediaType, schema: only && others.length === 0 ? only : schema, isOptional: only !== undefined }
  })
  return {
    required: !contents.every(({ isOptional }) => isOptional),
    content: Object.fromEntries(contents.map(({ mediaType, schema }) => [mediaType, { schema }])),
  }
}

function addHeaders(response: Response, { status, takesKey }: { status: string; takesKey: boolean }): Response {
  const names = [
    ...COMMON_HEADERS,
    ...(status === '201' ? ['Location'] : []),
    ...(takesKey ? ['Idempotency-Replayed'] : []),
  ]
  return { ...response, headers: referHeaders(names) }
}

/** The names of the statuses of problems (RFC 9110 section 15, RFC 6585). */
const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'Bad request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not found',
  405: 'Method not allowed',
  408: 'Request timeout',
  409: 'Conflict',
  410: 'Gone',
  412: 'Precondition failed',
  413: 'Content too large',
  415: 'Unsupported media type',
  422: 'Unprocessable content',
  429: 'Too many requests',
  431: 'Request header fields too large',
  500: 'Internal server error',
  503: 'Service unavailable',
}

/** `NotFound` of "Not found". */
const toName = (words: string) => words.replace(/(?:^| )([a-z])/gi, (_, letter: string) => letter.toUpperCase())

/**
 * `Forbidden`: all problems with one status, named after the status, which stays when a code is added. `ForbiddenPage`
 * is for a route that shows its refusals to a browser as a page; earlier refusals stay JSON.
 */
function buildProblemResponse({ status, isPage }: { status: number; isPage: boolean }): {
  name: string
  response: Response
} {
  const codes = Object.entries(PROBLEMS).filter(([, problem]) => problem.status === status)
  const words = STATUS_NAMES[status]
  if (words === undefined) throw new Error(`status ${status} has no name; add it to STATUS_NAMES`)
  const names = [
    ...COMMON_HEADERS,
    ...(status === 401 ? ['WWW-Authenticate'] : []),
    ...(status === 429 || status === 503 ? ['Retry-After'] : []),
  ]
  return {
    name: `${toName(words)}${isPage ? 'Page' : ''}`,
    response: {
      description: `${words}. Codes: ${codes.map(([code]) => `\`${code}\``).join(', ')}.`,
      headers: referHeaders(names),
      content: {
        'application/problem+json': { schema: refer('schemas', 'Problem') },
        ...(isPage && { [PAGE_TYPE]: { schema: { type: 'string' } } }),
      },
    },
  }
}

import { _, Ajv, type ErrorObject, type FuncKeywordDefinition, type ValidateFunction } from 'ajv'
import type { FastifyRequest, FastifySchemaCompiler } from 'fastify'
import { type FieldError, type FieldErrorCode, type FieldParams, firstValues } from '../problem/field-error.ts'
import { ERRORS_LIMIT, Problem } from '../problem/problem.ts'
import { keepCompiled } from '../shape/compiled-schemas.ts'
import { REQUEST_FORMATS } from '../shape/formats.ts'
import { UUID_PATTERN } from './schema.ts'

/** Characters and values of an input up to which all its errors are listed, else the first: as a body's limit. */
const FAULT_LIST_SIZE_LIMIT = 65_536

function buildAjv(coerceTypes: false | 'array', allErrors: boolean): Ajv {
  const ajv = new Ajv({
    coerceTypes,
    allErrors,
    removeAdditional: false,
    useDefaults: true,
    strict: false,
    // Refuses a schema with an unknown format.
    strictSchema: true,
    // test/journeys/every-schema.test.ts does so: the schema of schemas takes a twentieth of a start to compile.
    validateSchema: false,
    formats: Object.fromEntries(Object.entries(REQUEST_FORMATS).map(([name, { isValid }]) => [name, isValid])),
  })
  return ajv.removeKeyword('pattern').addKeyword(PATTERN_KEYWORD)
}

/** `pattern` of JSON Schema, except that a text over the schema's `maxLength` is not matched: `maxLength` reports it. */
const PATTERN_KEYWORD: FuncKeywordDefinition = {
  keyword: 'pattern',
  type: 'string',
  schemaType: 'string',
  compile: (pattern: string, parentSchema) => {
    const { maxLength } = parentSchema as { maxLength?: number }
    const expression = new RegExp(pattern, 'u')
    return (text: string) => (maxLength !== undefined && isLonger(text, maxLength)) || expression.test(text)
  },
  error: {
    message: ({ schema }) => `must match pattern "${String(schema)}"`,
    params: ({ schemaCode }) => _`{pattern: ${schemaCode}}`,
  },
}

/** Whether `text` has more than `limit` characters. A surrogate pair counts as one, as in `maxLength`. */
function isLonger(text: string, limit: number): boolean {
  return text.length > limit && (text.length > 2 * limit || Array.from(text).length > limit)
}

// JSON bodies have types: "true" is not a boolean. Query and path parameters are text and are coerced.
const bodyAjv = { first: buildAjv(false, false), all: buildAjv(false, true) }
const textAjv = { first: buildAjv('array', false), all: buildAjv('array', true) }

/**
 * Builds the validators of all routes: strict for bodies, coercing for parameters. A validator compiles its schema at its
 * first input: to compile them all takes an eighth of a start. The first pass ends at the first
 * error. ajv checks lengths before `uniqueItems`, items, patterns and formats, so this pass does not read a text over its
 * `maxLength` or a list over its `maxItems`, and takes time linear in the input. Only a small invalid input gets a second
 * pass for all its errors: with `allErrors`, ajv continues after a failed length and does not limit the number of errors.
 */
export const compileValidator: FastifySchemaCompiler<object> = ({ schema, httpPart }) =>
  httpPart === 'body'
    ? keepValidator(schema, 'body', () => buildValidator(bodyAjv, schema))
    : keepValidator(schema, 'text', () => buildValidator(textAjv, schema))

const keepValidator = keepCompiled<ReturnType<typeof buildValidator>>()

function buildValidator(ajv: typeof bodyAjv, schema: object) {
  let validateFirst: ValidateFunction | undefined
  let validateAll: ValidateFunction | undefined
  const validate = (value: unknown): boolean => {
    validateFirst ??= ajv.first.compile(schema)
    if (validateFirst(value)) return true
    validate.errors = validateFirst.errors ?? null
    if (isSmall(value)) {
      validateAll ??= ajv.all.compile(schema)
      if (!validateAll(value)) validate.errors = validateAll.errors ?? null
    }
    return false
  }
  validate.errors = null as ErrorObject[] | null
  return validate
}

/** Whether a value is within the limit. Not recursive, so deep nesting is safe. */
function isSmall(value: unknown): boolean {
  let left = FAULT_LIST_SIZE_LIMIT
  const waiting = [value]
  while (waiting.length > 0 && left >= 0) {
    const next = waiting.pop()
    left -= typeof next === 'string' ? next.length : 1
    if (typeof next !== 'object' || next === null) continue
    if (Array.isArray(next)) {
      left -= countIndexDigits(next.length)
      if (left < waiting.length + next.length) return false
      for (const entry of next) waiting.push(entry)
    } else
      for (const key in next) {
        left -= key.length
        if (left < waiting.length) return false
        waiting.push((next as Record<string, unknown>)[key])
      }
  }
  return left >= 0
}

/** The digits of all indexes of a list: they count as the names of members do. */
function countIndexDigits(length: number): number {
  let digits = length
  for (let first = 10; first < length; first *= 10) digits += length - first
  return digits
}

function describeParamsError({ validation }: NonNullable<FastifyRequest['validationError']>): string {
  const [first] = buildFieldErrors((validation ?? []) as ErrorObject[])
  return first === undefined || first.params?.pattern === UUID_PATTERN
    ? 'The id in the path is not a UUID in lower case.'
    : `The ${first.path} in the path ${first.message}.`
}

/** Throws the problem of invalid params (404) or of all else (422) (docs/contract/api.md#errors). */
export function checkValidation(request: FastifyRequest, part: 'params' | 'rest'): void {
  const error = request.validationError
  if (!error) return
  const isParams = error.validationContext === 'params'
  if (part === 'params') {
    if (!isParams) return
    const shadowed = request.server.findShadowed({ method: request.method, target: request.url })
    throw shadowed ?? new Problem('not_found', describeParamsError(error))
  }
  const errors = buildFieldErrors((error.validation ?? []) as ErrorObject[])
  const first = errors[0]
  throw new Problem(
    'validation_failed',
    first ? `${first.path || 'The body'}: ${first.message}` : 'The request is invalid.',
    {
      errors,
    },
  )
}

/** Characters of a path in an error: longer than any path of a schema; cuts unknown members. */
const PATH_LENGTH_LIMIT = 200

/** Refuses a body, save an empty object, on a route without (docs/contract/api.md#unknown-members). */
export function checkNoBody({ body }: FastifyRequest): void {
  if (body === undefined || body === null) return
  const members = typeof body === 'object' && !Array.isArray(body) ? Object.keys(body) : ['']
  if (members.length === 0) return
  const message = 'is not accepted: this route takes no body; remove it'
  const errors = members
    .slice(0, ERRORS_LIMIT)
    .map((path) => ({ path: cutPath(path), code: 'unknown_member' as const, message }))
  throw new Problem('validation_failed', 'This route takes no body; remove it.', { errors })
}

/** One entry for each broken rule, at most 50. Takes time linear in the number of errors. */
export function buildFieldErrors(found: readonly ErrorObject[]): FieldError[] {
  return found.slice(0, ERRORS_LIMIT).map(describe)
}

function toDotted(pointer: string): string {
  return cutPath(pointer.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~'))
}

function cutPath(path: string): string {
  return path.length > PATH_LENGTH_LIMIT ? `${path.slice(0, PATH_LENGTH_LIMIT)}…` : path
}

const RULE_BROKEN = 'breaks a rule'

function describe(error: ErrorObject): FieldError {
  const base = toDotted(error.instancePath)
  const inside = (member: string) => cutPath(base ? `${base}.${member}` : member)
  const params = error.params as Record<string, unknown>
  const build = (code: FieldErrorCode, message: string, told?: FieldParams): FieldError => ({
    ...{ path: base, code, message },
    ...(told && { params: told }),
  })
  switch (error.keyword) {
    case 'required':
      return { path: inside(String(params.missingProperty)), code: 'required', message: 'is required' }
    case 'additionalProperties':
      return {
        path: inside(String(params.additionalProperty)),
        code: 'unknown_member',
        message: 'is not a member of this request; remove it',
      }
    case 'type':
      return build('type', `must be ${[params.type].flat().join(' or ')}`, { types: firstValues([params.type].flat()) })
    case 'enum': {
      const allowed = params.allowedValues as unknown[]
      return build('enum', `must be one of ${allowed.join(', ')}`, { values: firstValues(allowed) })
    }
    case 'const':
      return build('const', error.message ?? RULE_BROKEN, { values: firstValues([params.allowedValue]) })
    case 'pattern':
      return build('pattern', `must match ${String(params.pattern)}`, { pattern: String(params.pattern) })
    case 'format': {
      const format = String(params.format)
      return build('format', `must be ${REQUEST_FORMATS[format]?.rule}`, { format })
    }
    default: {
      const { limit } = params
      // test/journeys/every-schema.test.ts finds a keyword that is no code.
      const code = error.keyword as FieldErrorCode
      return build(code, error.message ?? RULE_BROKEN, typeof limit === 'number' ? { limit } : undefined)
    }
  }
}

/** Refuses a form (415) unless the route takes such forms: a page of any site can post one. */
export function checkMediaType(
  route: { method: string; takesForm?: boolean | undefined; takesMultipart?: boolean | undefined },
  request: FastifyRequest,
): void {
  if (route.method === 'GET') return
  const mediaType = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  const isRefused =
    (mediaType === 'application/x-www-form-urlencoded' && !route.takesForm) ||
    (mediaType === 'multipart/form-data' && !route.takesMultipart)
  if (isRefused) throw new Problem('unsupported_media_type', 'Send the body as Content-Type: application/json.')
}

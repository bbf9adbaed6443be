import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import type { FastifyRequest, FastifySchemaCompiler } from 'fastify'
import { keepCompiled } from './compiled-schemas.ts'
import { type FieldError, Problem } from './problem.ts'

// Bodies are JSON and say their types: "true" is not a boolean. Query and path parameters are text and are read.
const strictAjv = buildAjv(false)
const coercingAjv = buildAjv('array')

function buildAjv(coerceTypes: false | 'array'): Ajv {
  const ajv = new Ajv({ coerceTypes, allErrors: true, removeAdditional: false, useDefaults: true, strict: false })
  addFormats.default(ajv)
  // The pattern of UuidSchema decides, and is stricter: one broken rule is one error.
  ajv.addFormat('uuid', true)
  return ajv
}

const keepValidator = keepCompiled<ValidateFunction>()

/** Compiles the validators of all routes: strict for bodies, reading text for parameters. */
export const compileValidator: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  const isBody = httpPart === 'body'
  return keepValidator(schema, isBody ? 'body' : 'text', () => (isBody ? strictAjv : coercingAjv).compile(schema))
}

/**
 * Turns what the validator found into a problem. Path parameters that can name nothing are a 404, the rest a 422 (D4).
 * `part` says which of the two is asked: path parameters are judged before the target is loaded, the rest after it.
 */
export function checkValidation(request: FastifyRequest, part: 'params' | 'rest'): void {
  const error = request.validationError
  if (!error) return
  const isParams = error.validationContext === 'params'
  if (part === 'params') {
    if (isParams) throw new Problem('not_found', 'The id in the path is not a UUID in lower case, so it names nothing.')
    return
  }
  const errors = buildFieldErrors((error.validation ?? []) as ErrorObject[])
  const first = errors[0]
  throw new Problem(
    'validation_failed',
    first ? `${first.path || 'The body'}: ${first.message}` : 'The request breaks a rule.',
    {
      errors,
    },
  )
}

/** More than a person reads; a body of a million faults is not answered with a million sentences. */
const ERRORS_LIMIT = 50

/** Refuses members sent to a route that takes no body (D4: never silently dropped). An empty object is as good as nothing. */
export function checkNoBody({ body }: FastifyRequest): void {
  if (body === undefined || body === null) return
  const members = typeof body === 'object' && !Array.isArray(body) ? Object.keys(body) : ['']
  if (members.length === 0) return
  const message = 'is not taken: this request has no body; remove it'
  const errors = members.slice(0, ERRORS_LIMIT).map((path) => ({ path, code: 'unknown_member', message }))
  throw new Problem('validation_failed', 'This request takes no body; remove it.', { errors })
}

/**
 * One entry for each broken rule, at most 50. Of alternatives (`anyOf`): the rules of the one whose type fits, or, where
 * none fits, one entry that names them all.
 */
export function buildFieldErrors(found: ErrorObject[]): FieldError[] {
  const unions = found.filter((error) => error.keyword === 'anyOf')
  const isInUnion = (error: ErrorObject) => unions.some((union) => union.instancePath === error.instancePath)
  const plain = found.filter((error) => !isInUnion(error)).map(describe)
  const ofUnions = unions.flatMap((union) => {
    const branches = found.filter((error) => error.keyword !== 'anyOf' && error.instancePath === union.instancePath)
    const fitting = branches.filter(({ keyword }) => keyword !== 'type' && keyword !== 'const')
    return fitting.length > 0 ? fitting.map(describe) : [describeAlternatives(union, branches)]
  })
  return [...plain, ...ofUnions].slice(0, ERRORS_LIMIT)
}

function describeAlternatives(union: ErrorObject, branches: ErrorObject[]): FieldError {
  // A literal breaks both its type and its value; the value says more.
  const consts = branches.filter(({ keyword }) => keyword === 'const')
  const allowed = consts.map(({ params }) => JSON.stringify(params.allowedValue))
  const types = branches
    .filter((error) => error.keyword === 'type' && !consts.some((one) => isSameBranch(one, error)))
    .map(({ params }) => String(params.type))
  const words = [...new Set([...allowed, ...types])].join(' or ')
  return {
    path: toDotted(union.instancePath),
    code: 'type',
    message: words ? `must be ${words}` : 'has the wrong type',
  }
}

function isSameBranch(one: ErrorObject, other: ErrorObject): boolean {
  const branch = ({ schemaPath }: ErrorObject) => schemaPath.slice(0, schemaPath.lastIndexOf('/'))
  return branch(one) === branch(other)
}

function toDotted(pointer: string): string {
  return pointer.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
}

function describe(error: ErrorObject): FieldError {
  const base = toDotted(error.instancePath)
  const inside = (member: string) => (base ? `${base}.${member}` : member)
  const params = error.params as Record<string, unknown>
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
      return { path: base, code: 'type', message: `must be ${[params.type].flat().join(' or ')}` }
    case 'enum':
      return { path: base, code: 'enum', message: `must be one of ${(params.allowedValues as unknown[]).join(', ')}` }
    case 'pattern':
      return { path: base, code: 'pattern', message: `must match ${String(params.pattern)}` }
    default:
      return { path: base, code: error.keyword, message: error.message ?? 'breaks a rule' }
  }
}

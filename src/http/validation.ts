import { Ajv, type ErrorObject } from 'ajv'
import addFormats from 'ajv-formats'
import type { FastifyRequest, FastifySchemaCompiler } from 'fastify'
import { type FieldError, Problem } from './problem.ts'

// Bodies are JSON and say their types: "true" is not a boolean. Query and path parameters are text and are read.
const strictAjv = buildAjv(false)
const coercingAjv = buildAjv('array')

function buildAjv(coerceTypes: false | 'array'): Ajv {
  const ajv = new Ajv({ coerceTypes, allErrors: true, removeAdditional: false, useDefaults: true, strict: false })
  addFormats.default(ajv)
  return ajv
}

/** Compiles the validators of all routes: strict for bodies, reading text for parameters. */
export const compileValidator: FastifySchemaCompiler<object> = ({ schema, httpPart }) =>
  (httpPart === 'body' ? strictAjv : coercingAjv).compile(schema)

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

/** One entry for each broken rule; of alternatives (`anyOf`) only the summary, not every branch. */
export function buildFieldErrors(found: ErrorObject[]): FieldError[] {
  const unions = found.filter((error) => error.keyword === 'anyOf').map((error) => error.instancePath)
  const kept = found.filter((error) => error.keyword === 'anyOf' || !unions.includes(error.instancePath))
  return kept.slice(0, ERRORS_LIMIT).map(describe)
}

function describe(error: ErrorObject): FieldError {
  const base = error.instancePath.slice(1).replaceAll('/', '.')
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
    case 'enum':
      return { path: base, code: 'enum', message: `must be one of ${(params.allowedValues as unknown[]).join(', ')}` }
    case 'pattern':
      return { path: base, code: 'pattern', message: `must match ${String(params.pattern)}` }
    case 'anyOf': {
      const parts = (error.parentSchema as { anyOf?: { type?: string; const?: unknown }[] } | undefined)?.anyOf
      const words = parts?.map((part) => part.type ?? JSON.stringify(part.const)).join(' or ')
      return { path: base, code: 'type', message: words ? `must be ${words}` : 'has the wrong type' }
    }
    default:
      return { path: base, code: error.keyword, message: error.message ?? 'breaks a rule' }
  }
}

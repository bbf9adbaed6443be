import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import { FIELD_ERRORS } from '../../src/http/problem/field-error.ts'
import { findFastifySchema } from '../../src/http/route/schema.ts'
import { compileValidator } from '../../src/http/route/validation.ts'

/**
 * The service compiles a schema when the first request needs it, without a look at the schema itself, so one that does not
 * compile, or is no JSON Schema, must be found here.
 */
const routes = ROUTE_TREE.map((route) => ({ route, schema: findFastifySchema(route) as Record<string, object> }))

test('the schema of every input is a JSON Schema, and compiles', () => {
  const judge = new Ajv({ strict: false })
  const parts = routes.flatMap(({ route: { method, path: url }, schema: schemas }) =>
    ['body', 'querystring', 'params'].flatMap((httpPart) => {
      const schema = schemas[httpPart]
      return schema ? [{ schema, httpPart, method, url }] : []
    }),
  )
  expect(parts.length).toBeGreaterThan(100)
  for (const part of parts) {
    const validate = compileValidator(part) as (value: unknown) => boolean
    const name = `${part.httpPart} of ${part.method} ${part.url}`
    expect(judge.validateSchema(part.schema), `${name}: ${judge.errorsText()}`).toBe(true)
    expect(() => validate({}), name).not.toThrow()
  }
})

/** Members of a schema that no input breaks by themselves. */
const NO_RULES = ['additionalProperties', 'default', 'description', 'items', 'properties', 'title']

/** The keywords of a schema of an input, and of those inside it. */
function listKeywords(schema: object): string[] {
  return Object.entries(schema).flatMap(([keyword, value]) => {
    const isMap = keyword === 'properties'
    const isSchema = (keyword === 'items' || keyword === 'additionalProperties') && typeof value === 'object'
    const inside = isMap ? Object.values(value as Record<string, object>) : isSchema ? [value as object] : []
    return [keyword, ...inside.flatMap(listKeywords)]
  })
}

test('the codes of fields are those of the rules that schemas of inputs have', () => {
  const schemas = routes.flatMap(({ schema: { body, querystring } }) => [body, querystring].filter((part) => !!part))
  const rules = new Set(schemas.flatMap((schema) => listKeywords(schema as object)))
  for (const keyword of NO_RULES) rules.delete(keyword)
  const registered = Object.keys(FIELD_ERRORS)
  const ofSchemas = registered.slice(0, registered.indexOf('unknown_member'))
  expect([...rules].sort()).toEqual(ofSchemas.toSorted())
})

test('the schema of every answer compiles', () => {
  const compile = SerializerSelector()({}, {} as never)
  const answers = routes.flatMap(({ route: { method, path: url }, schema: { response = {} } }) =>
    Object.entries(response as Record<string, { content?: Record<string, { schema: object }> }>).flatMap(
      ([httpStatus, answer]) => {
        const schemas = answer.content ? Object.values(answer.content).map(({ schema }) => schema) : [answer]
        return schemas.map((schema) => ({ schema, method, url, httpStatus }))
      },
    ),
  )
  expect(answers.length).toBeGreaterThan(100)
  for (const answer of answers)
    expect(() => compile(answer as never), `${answer.httpStatus} of ${answer.method} ${answer.url}`).not.toThrow()
})

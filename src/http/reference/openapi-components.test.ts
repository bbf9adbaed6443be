import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { PROBLEMS } from '../problem/problem.ts'
import { enumSchema, named, nullable, TimestampSchema, UuidSchema } from '../route/schema.ts'
import { closeObjects } from '../shape/close-objects.ts'
import { buildCollectedComponents, collectOperation, liftSchemas, PROBLEM_OR_PAGE } from './openapi-components.ts'
import type { Operation } from './openapi-document.ts'

const StatusSchema = named('Status', enumSchema(['open', 'closed']))
const Owner = named('Owner', Type.Object({ id: UuidSchema }))

/** A schema as plain JSON, as in the document. */
const toJson = (schema: object) => JSON.parse(JSON.stringify(schema))

function buildOperation(members: Partial<Operation>): Operation {
  return { operationId: 'thingDo', responses: {}, ...members }
}

describe('named schemas', () => {
  test('are defined once under components and referenced elsewhere', () => {
    const components = buildCollectedComponents()
    const row = Type.Object({ status: StatusSchema, owners: Type.Array(Owner), created_at: TimestampSchema })
    expect(liftSchemas(toJson({ a: named('Row', row), b: Type.Array(named('Row', row)) }), components)).toEqual({
      a: { $ref: '#/components/schemas/Row' },
      b: { type: 'array', items: { $ref: '#/components/schemas/Row' } },
    })
    expect(Object.keys(components.schemas).sort()).toEqual(['Owner', 'Row', 'Status'])
    expect(components.schemas.Row).toMatchObject({
      properties: {
        status: { $ref: '#/components/schemas/Status' },
        owners: { type: 'array', items: { $ref: '#/components/schemas/Owner' } },
      },
    })
  })

  test('are a reference or null if nullable; a nullable schema without a name has two types', () => {
    const components = buildCollectedComponents()
    const schema = Type.Object({
      status: nullable(StatusSchema),
      owner: nullable(Owner),
      at: nullable(TimestampSchema),
    })
    expect(liftSchemas(toJson(schema), components)).toMatchObject({
      properties: {
        status: { anyOf: [{ $ref: '#/components/schemas/Status' }, { type: 'null' }] },
        owner: { anyOf: [{ $ref: '#/components/schemas/Owner' }, { type: 'null' }] },
        at: { type: ['string', 'null'], format: 'date-time' },
      },
    })
    expect(components.schemas.Status).toEqual({ type: 'string', enum: ['open', 'closed'] })
    expect(components.schemas.Owner).toMatchObject({ type: 'object' })
  })

  test('are one schema for a closed request and an answer', () => {
    const components = buildCollectedComponents()
    const schema = Type.Object({ status: StatusSchema })
    liftSchemas(toJson({ body: closeObjects(schema), data: schema }), components)
    expect(components.schemas.Status).toEqual({ type: 'string', enum: ['open', 'closed'] })
  })

  test('refuse one name for two different schemas', () => {
    const other = named('Owner', Type.Object({ name: Type.String() }))
    expect(() => liftSchemas(toJson({ a: Owner, b: other }), buildCollectedComponents())).toThrow(
      'two different schemas are named Owner',
    )
  })

  test('leave a member that is called title alone', () => {
    const components = buildCollectedComponents()
    const schema = toJson(Type.Object({ title: Type.String() }))
    expect(liftSchemas(schema, components)).toEqual(schema)
    expect(components.schemas).toEqual({})
  })
})

describe('operations', () => {
  test('have an optional body if it is nullable', () => {
    const schema = toJson(nullable(Owner))
    const operation = buildOperation({ requestBody: { required: true, content: { 'application/json': { schema } } } })
    expect(collectOperation(operation, buildCollectedComponents()).requestBody).toEqual({
      required: false,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Owner' } } },
    })
  })

  test('share the parameters of lists, except another one with the same name', () => {
    const components = buildCollectedComponents()
    const cursor = { in: 'query', name: 'cursor', schema: { type: 'string' } }
    const other = { ...cursor, schema: { type: 'integer' } }
    const own = { in: 'query', name: 'webhook', schema: { type: 'string' } }
    const share = (parameters: (typeof cursor)[]) =>
      collectOperation(buildOperation({ parameters }), components).parameters
    expect(share([cursor, own])).toEqual([{ $ref: '#/components/parameters/Cursor' }, own])
    expect(share([other])).toEqual([other])
    expect(components.parameters).toEqual({ Cursor: cursor })
  })

  test('list the headers of their answers, with Location for a creation', () => {
    const created = collectOperation(
      buildOperation({ responses: { 201: { description: 'Success' } } }),
      buildCollectedComponents(),
    )
    expect(created.responses['201']?.headers).toMatchObject({
      Location: { $ref: '#/components/headers/Location' },
      'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
    })
  })
})

test('a problem of a route of pages may be a page, and that of another route is none', () => {
  const components = buildCollectedComponents()
  const responses = (description: string) => ({ 422: { description } })
  const page = collectOperation(buildOperation({ responses: responses(PROBLEM_OR_PAGE) }), components)
  const other = collectOperation(buildOperation({ responses: responses('Problem') }), components)
  expect(page.responses['422']).toEqual({ $ref: '#/components/responses/UnprocessableContentPage' })
  expect(other.responses['422']).toEqual({ $ref: '#/components/responses/UnprocessableContent' })
  const types = (name: string) => Object.keys(components.responses[name]?.content ?? {})
  expect(types('UnprocessableContentPage')).toEqual(['application/problem+json', 'text/html'])
  expect(types('UnprocessableContent')).toEqual(['application/problem+json'])
})

test('the problems of a status are named after the status, whatever codes it has', () => {
  const components = buildCollectedComponents()
  const statuses = [...new Set(Object.values(PROBLEMS).map(({ status }) => status))].sort()
  const responses = Object.fromEntries(statuses.map((status) => [status, { description: 'Problem' }]))
  const operation = collectOperation(buildOperation({ responses }), components)
  const names = Object.entries(operation.responses).map(([status, { $ref = '' }]) => [status, $ref.split('/').at(-1)])
  expect(Object.fromEntries(names)).toMatchObject({
    400: 'BadRequest',
    404: 'NotFound',
    422: 'UnprocessableContent',
    503: 'ServiceUnavailable',
  })
  expect(new Set(names.map(([, name]) => name)).size).toBe(statuses.length)
  expect(components.responses.NotFound?.description).toBe('Not found. Codes: `provider_unknown`, `not_found`.')
})

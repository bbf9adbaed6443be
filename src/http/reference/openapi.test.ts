import { type TSchema, Type } from 'typebox'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildPipelineServer, sampleRoutes } from '../../../test/harness/app/pipeline-server.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { operationIdOf } from '../route/route.ts'
import { buildOpenApiDocument, registerOpenApi } from './openapi.ts'
import { type OpenApiDocument, resolveComponent } from './openapi-document.ts'

const envelope = Type.Object({ id: Type.String(), type: Type.String(), attempt: Type.Integer() })
const eventTypes = [
  { name: 'thing.create', accountScope: 'account', description: 'A thing was created.' },
  { name: 'api-key.revoke', accountScope: 'none', description: 'An API key was revoked.' },
] as const

let database: TestDatabase
let document: OpenApiDocument
let served: { statusCode: number; body: string; headers: Record<string, unknown> }

async function buildDescribed(routes = sampleRoutes) {
  const { server } = await buildPipelineServer({
    db: database.db,
    routes,
    before: (fresh) => registerOpenApi(fresh, { version: '1.2.3', eventTypes, envelope }),
  })
  await server.ready()
  return server
}

beforeAll(async () => {
  database = await createTestDatabase()
  const server = await buildDescribed()
  document = buildOpenApiDocument(server)
  served = await server.inject({ method: 'GET', url: '/openapi.json' })
})
afterAll(() => database?.[Symbol.asyncDispose]())

function listNodes(node: unknown): Record<string, unknown>[] {
  if (typeof node !== 'object' || node === null) return []
  return [node as Record<string, unknown>, ...Object.values(node).flatMap(listNodes)]
}

function resolvePointer(reference: string): unknown {
  return reference
    .slice(2)
    .split('/')
    .reduce<unknown>((node, part) => (node as Record<string, unknown> | undefined)?.[part], document)
}

describe('the OpenAPI document', () => {
  test('is OpenAPI 3.1 and served as built', () => {
    expect(document).toMatchObject({ openapi: '3.1.0', info: { title: 'Signalbox', version: '1.2.3' } })
    expect(served.statusCode).toBe(200)
    expect(JSON.parse(served.body)).toEqual(document)
  })

  test('has every declared route with its method, operation id, permission and success status', () => {
    for (const route of sampleRoutes) {
      const operation = document.paths[route.path]?.[route.method.toLowerCase()]
      expect(operation).toMatchObject({ operationId: operationIdOf(route), summary: route.summary })
      expect(operation?.['x-permission']).toBe(route.access ? undefined : `${route.resource}:${route.action}`)
      expect(operation?.security).toEqual(
        route.readsCaller ? [{}, { bearer: [] }] : route.access === 'public' ? [] : [{ bearer: [] }],
      )
      expect(operation?.responses).toHaveProperty(String(route.status ?? 200))
    }
    const count = Object.values(document.paths).flatMap((item) => Object.keys(item)).length
    expect(count).toBe(sampleRoutes.length)
  })

  test('has unique operation ids, webhooks included', () => {
    const items = [...Object.values(document.paths), ...Object.values(document.webhooks)]
    const ids = items.flatMap((item) => Object.values(item).map(({ operationId }) => operationId))
    expect(ids).toHaveLength(sampleRoutes.length + eventTypes.length)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('has no dangling reference', () => {
    const references = listNodes(document).flatMap((node) => (typeof node.$ref === 'string' ? [node.$ref] : []))
    expect(references).toContain('#/components/schemas/Problem')
    for (const reference of references) {
      expect(reference).toMatch(/^#\//)
      expect(resolvePointer(reference)).toBeTypeOf('object')
    }
  })

  test('declares every path parameter of its paths, and only those', () => {
    for (const [path, item] of Object.entries(document.paths)) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
      for (const operation of Object.values(item)) {
        const parameters = (operation.parameters ?? []).map((parameter) => resolveComponent(document, parameter))
        const declared = parameters.filter((parameter) => parameter.in === 'path').map((parameter) => parameter.name)
        expect(declared).toEqual(named)
      }
    }
  })

  test('describes every problem as application/problem+json', () => {
    const operations = Object.values(document.paths).flatMap((item) => Object.values(item))
    for (const { responses } of operations) {
      for (const [status, response] of Object.entries(responses)) {
        if (Number(status) < 400) continue
        expect(response).toEqual({ $ref: expect.stringMatching(/^#\/components\/responses\/[A-Z]\w+$/) })
        expect(resolveComponent(document, response).content).toEqual({
          'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
        })
      }
    }
    expect(document.components.responses?.Conflict?.description).toContain('`duplicate_not_confirmed`')
  })

  test('documents the problems that each kind of route may answer, and no other', () => {
    const problemsOf = (method: string, path: string) =>
      Object.keys(document.paths[`/api/v3/sample/${path}`]?.[method]?.responses ?? {}).filter((name) => name >= '400')
    const always = ['400', '429', '500', '503']
    expect(problemsOf('get', 'thing')).toEqual([...always, '401', '403', '422', '431'].sort())
    expect(problemsOf('get', 'thing/{id}')).toEqual([...always, '401', '403', '404'].sort())
    expect(problemsOf('get', 'thing/me')).toEqual([...always, '401', '403'].sort())
    const ofBodies = ['413', '415', '422']
    expect(problemsOf('post', 'thing')).toEqual([...always, ...ofBodies, '401', '403', '409'].sort())
    expect(problemsOf('post', 'thing/{id}/test')).toEqual([...always, ...ofBodies, '401', '403', '404', '409'].sort())
    expect(problemsOf('patch', 'thing/{id}')).toEqual([...always, ...ofBodies, '401', '403', '404', '409'].sort())
    expect(problemsOf('post', 'thing/sign-in')).toEqual([...always, ...ofBodies].sort())
  })

  test('has an Idempotency-Key parameter on the routes that take one', () => {
    const takes = (path: string) =>
      document.paths[path]?.post?.parameters?.some(
        (parameter) => resolveComponent(document, parameter).name === 'Idempotency-Key',
      ) ?? false
    expect(takes('/api/v3/sample/thing')).toBe(true)
    expect(takes('/api/v3/sample/thing/sign-in')).toBe(false)
  })

  test('closes the objects of requests, so that a generated client cannot send an unknown member', () => {
    const body = document.paths['/api/v3/sample/thing']?.post?.requestBody?.content['application/json']?.schema
    expect(body).toEqual({ $ref: '#/components/schemas/ThingBody' })
    expect(document.components.schemas?.ThingBody).toMatchObject({
      additionalProperties: false,
      properties: { note: { additionalProperties: false } },
    })
  })

  test('links a creation to the operations on the created resource', () => {
    const created = document.paths['/api/v3/sample/thing']?.post?.responses['201']
    expect(Object.keys(created?.links ?? {})).toEqual(['thingFindOne', 'thingUpdate', 'thingTest'])
    expect(created?.links?.thingUpdate).toEqual({
      operationId: 'thingUpdate',
      parameters: { id: '$response.body#/data/document_id' },
    })
  })

  test('has one webhook for each event type, with the envelope and the headers of a delivery', () => {
    expect(Object.keys(document.webhooks)).toEqual(['api-key.revoke', 'thing.create'])
    const { post } = document.webhooks['thing.create']!
    expect(post.operationId).toBe('onThingCreate')
    expect(JSON.stringify(post.requestBody)).toContain('#/components/schemas/Envelope')
    const names = (post.parameters ?? []).map(
      (parameter) => (resolvePointer(parameter.$ref ?? '') as { name: string } | undefined)?.name,
    )
    expect(names).toEqual([
      'x-service-signature',
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
      'x-service-event',
      'x-service-delivery',
      'x-service-attempt',
      'traceparent',
    ])
    expect(document.components.schemas?.Envelope).toMatchObject({ properties: { attempt: { type: 'integer' } } })
  })

  test('does not depend on the order in which routes are mounted', async () => {
    const other = buildOpenApiDocument(await buildDescribed(sampleRoutes.toReversed()))
    expect(JSON.stringify(other)).toBe(JSON.stringify(document))
  })

  test('keeps TypeScript-only marks out of its schemas', () => {
    const marks = listNodes(document).flatMap((node) => Object.keys(node).filter((key) => /^~|^\$id$/.test(key)))
    expect(marks).toEqual([])
    expect(envelope satisfies TSchema).toBeDefined()
  })
})

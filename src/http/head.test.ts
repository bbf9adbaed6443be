import { Readable } from 'node:stream'
import type { InjectOptions } from 'fastify'
import { Type } from 'typebox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildPipelineServer, type SampleDeps, sampleRoutes } from '../../test/harness/app/pipeline-server.ts'
import { createTestDatabase, type TestDatabase } from '../../test/harness/database/database.ts'
import { defineRoute } from './route/route.ts'

const THING = '/api/v3/sample/thing'
const MISSING = `${THING}/01890000-0000-7000-8000-0000000000ff`

let database: TestDatabase
let sample: Awaited<ReturnType<typeof buildPipelineServer>>
/** The parts of the sample stream that were read. */
let partsRead = 0

async function* readParts() {
  for (const part of ['a', 'b']) {
    partsRead += 1
    yield part
  }
}

const streamRoute = defineRoute(
  {
    method: 'GET',
    path: `${THING}/stream`,
    resource: 'thing',
    action: 'stream',
    accountScope: 'none',
    summary: 'Stream things',
    data: Type.Null(),
    media: { 'text/plain': Type.String() },
  },
  {
    handle: async (_: SampleDeps) => ({ kind: 'stream', contentType: 'text/plain', body: Readable.from(readParts()) }),
  },
)

beforeAll(async () => {
  database = await createTestDatabase()
  sample = await buildPipelineServer({ db: database.db, routes: [...sampleRoutes, streamRoute] })
})
afterAll(async () => {
  await sample?.server.close()
  await database?.[Symbol.asyncDispose]()
})

function send(method: InjectOptions['method'], url: string, as = 'admin') {
  const headers = { authorization: `Bearer ${as}`, 'x-request-id': 'one' }
  return sample.server.inject({ method: method!, url, headers })
}

async function createThing(): Promise<string> {
  const headers = { authorization: 'Bearer admin' }
  const response = await sample.server.inject({ method: 'POST', url: THING, headers, payload: { name: 'a thing' } })
  return response.json().data.document_id
}

test('HEAD of a row has the status and the headers of GET, and no body', async () => {
  const path = `${THING}/${await createThing()}`
  const [get, head] = [await send('GET', path), await send('HEAD', path)]
  expect([head.statusCode, head.body]).toEqual([200, ''])
  expect({ ...head.headers, date: '' }).toEqual({ ...get.headers, date: '' })
  expect(head.headers['content-length']).toBe(String(Buffer.byteLength(get.body)))
})

test.each([
  ['without a token', 'nobody', 401],
  ['without the permission', 'stranger', 403],
  ['of a missing row', 'admin', 404],
])('HEAD %s has the status and the headers of the problem that GET answers, and no body', async (_, as, status) => {
  const [get, head] = [await send('GET', MISSING, as), await send('HEAD', MISSING, as)]
  expect([get.statusCode, head.statusCode, head.body]).toEqual([status, status, ''])
  expect({ ...head.headers, date: '' }).toEqual({ ...get.headers, date: '' })
})

test('HEAD of a stream has its type, and does not read it', async () => {
  const head = await send('HEAD', `${THING}/stream`)
  expect([head.statusCode, head.headers['content-type'], head.body]).toEqual([200, 'text/plain', ''])
  expect(head.headers).not.toHaveProperty('content-length')
  expect(partsRead).toBe(0)
  expect((await send('GET', `${THING}/stream`)).body).toBe('ab')
})

test('HEAD of a path without GET is a 405 whose Allow has no HEAD', async () => {
  const head = await send('HEAD', `${MISSING}/test`)
  expect([head.statusCode, head.headers.allow, head.body]).toEqual([405, 'POST', ''])
})

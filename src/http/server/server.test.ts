import { METHODS } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { InjectOptions } from 'fastify'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildPipelineServer } from '../../../test/harness/app/pipeline-server.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { openDatabase } from '../../postgres/statement/database.ts'
import { toProblem } from '../problem/problem-answer.ts'

const THING = '/api/v3/sample/thing'
const MISSING = `${THING}/01890000-0000-7000-8000-0000000000ff`

let database: TestDatabase
let logged: string[]
let sample: Awaited<ReturnType<typeof buildPipelineServer>>

beforeAll(async () => {
  database = await createTestDatabase()
  logged = []
  sample = await buildPipelineServer({ db: database.db, logStream: { write: (line) => logged.push(line) } })
  await sample.server.listen({ port: 0, host: '127.0.0.1' })
})
afterAll(async () => {
  await sample?.server.close()
  await database?.[Symbol.asyncDispose]()
})

function send(method: InjectOptions['method'], url: string, options: InjectOptions & { as?: string } = {}) {
  const { as = 'admin', headers, ...rest } = options
  return sample.server.inject({ method: method!, url, ...rest, headers: { authorization: `Bearer ${as}`, ...headers } })
}

function sendText(text: string | Buffer, type = 'application/json') {
  return send('POST', THING, { payload: text, headers: { 'content-type': type } })
}

async function createThing(name: string): Promise<string> {
  const response = await send('POST', THING, { payload: { name } })
  return response.json().data.document_id
}

describe('success', () => {
  test('a creation answers 201 with the envelope, Location and no-store', async () => {
    const response = await send('POST', THING, { payload: { name: 'first' } })
    const { data, message } = response.json()
    expect(response.statusCode).toBe(201)
    expect(response.headers).toMatchObject({ location: `${THING}/${data.document_id}`, 'cache-control': 'no-store' })
    expect(message).toBe('Created.')
    expect((await send('GET', response.headers.location as string)).json().data.name).toBe('first')
  })

  test('an action that only enqueues answers 202, with or without an empty body', async () => {
    const id = await createThing('enqueued')
    expect((await send('POST', `${THING}/${id}/test`)).statusCode).toBe(202)
    expect((await send('POST', `${THING}/${id}/test`, { payload: {} })).statusCode).toBe(202)
  })

  test('a list answers a page and the cursor of the next one', async () => {
    await createThing('page one')
    await createThing('page two')
    const first = (await send('GET', `${THING}?page_size=1&filters=name|like|page`)).json()
    expect(first).toMatchObject({ data: [{ name: 'page two' }], message: 'Things.', pagination: { page_size: 1 } })
    const cursor = first.pagination.next_cursor
    const second = (await send('GET', `${THING}?page_size=1&filters=name|like|page&cursor=${cursor}`)).json()
    expect(second).toMatchObject({ data: [{ name: 'page one' }], pagination: { page_size: 1, next_cursor: null } })
  })

  test('a bare answer has no envelope', async () => {
    const response = await send('POST', `${THING}/sign-in`, { payload: { password: 'x' } })
    expect(response.json()).toEqual({ jwt: 'jwt' })
  })

  test('a public route needs no token, a caller route any valid token', async () => {
    const open = await sample.server.inject({ method: 'POST', url: `${THING}/sign-in`, payload: { password: 'x' } })
    expect(open.statusCode).toBe(200)
    expect((await send('GET', `${THING}/me`, { as: 'stranger' })).json().data).toEqual({ user: 'stranger' })
  })

  test('security headers are on every answer', async () => {
    for (const url of [THING, '/nothing']) {
      expect((await send('GET', url)).headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'SAMEORIGIN',
        'referrer-policy': 'no-referrer',
        'strict-transport-security': expect.stringContaining('max-age='),
      })
    }
  })
})

describe('the order of checks: 401, 403, 404, 422, 409', () => {
  const wrong = { payload: { name: 5 } }

  test('a missing or invalid token is the first refusal, and names the scheme', async () => {
    const response = await send('PATCH', `${THING}/no-uuid`, { as: 'nobody', ...wrong })
    expect(response.statusCode).toBe(401)
    expect(response.headers['www-authenticate']).toBe('Bearer')
    expect(response.json().code).toBe('unauthenticated')
    expect((await sample.server.inject({ method: 'GET', url: THING })).statusCode).toBe(401)
  })

  test('401 and 403 come before the body is read', async () => {
    const broken = { payload: '{', headers: { 'content-type': 'application/json' } }
    expect((await send('POST', THING, { as: 'nobody', ...broken })).statusCode).toBe(401)
    expect((await send('POST', THING, { as: 'reader', ...broken })).statusCode).toBe(403)
  })

  test('a missing permission comes before a missing row, and the detail names it', async () => {
    const response = await send('PATCH', MISSING, { as: 'reader', ...wrong })
    expect(response.statusCode).toBe(403)
    expect(response.json().detail).toContain('thing:update')
  })

  test('a missing row comes before a wrong body', async () => {
    expect((await send('PATCH', MISSING, wrong)).json()).toMatchObject({ status: 404, code: 'not_found' })
    expect((await send('PATCH', `${THING}/no-uuid`, wrong)).json()).toMatchObject({ status: 404, code: 'not_found' })
  })

  test('a wrong body comes before a state conflict', async () => {
    const id = await createThing('taken')
    const both = { name: 'taken', more: 1 }
    expect((await send('PATCH', `${THING}/${id}`, { payload: both })).statusCode).toBe(422)
    expect((await send('PATCH', `${THING}/${id}`, { payload: { name: 'taken' } })).statusCode).toBe(409)
    expect((await send('POST', THING, { payload: { name: 'taken' } })).json().code).toBe('conflict')
  })
})

describe('problems', () => {
  test('have exactly the members of the contract, as application/problem+json', async () => {
    const response = await send('GET', MISSING, { headers: { 'x-request-id': 'my-id' } })
    expect(response.headers['content-type']).toMatch(/^application\/problem\+json/)
    expect(response.json()).toEqual({
      type: 'http://service.test/docs/errors/not_found',
      title: 'Not found',
      status: 404,
      code: 'not_found',
      detail: 'There is no thing with this id, or it was deleted.',
      request_id: 'my-id',
    })
  })

  test('a wrong method is a 405 whose Allow lists the right ones; an unknown path is a 404', async () => {
    const response = await send('PUT', THING)
    expect(response.statusCode).toBe(405)
    expect(response.headers.allow).toBe('GET, HEAD, POST')
    expect((await send('DELETE', `${THING}/01890000-0000-7000-8000-000000000001`)).headers.allow).toBe(
      'GET, HEAD, PATCH',
    )
    expect((await send('GET', `${THING}/a/b/c`)).statusCode).toBe(404)
    expect((await send('GET', `${THING}/`)).statusCode).toBe(404)
    expect((await send('POST', '/nothing', { payload: { a: 1 } })).statusCode).toBe(404)
  })

  test.each([`${THING}/%zz`, `${THING}/%00`, `${THING}?filters=name|eq|%00`])('%s is a 400 problem', async (url) => {
    const response = await send('GET', url)
    expect(response.json()).toMatchObject({ status: 400, code: 'malformed_request' })
    expect(response.headers['x-request-id']).toBe(response.json().request_id)
  })

  test('an id longer than any is a 404 problem', async () => {
    expect((await send('GET', `${THING}/${'a'.repeat(300)}`)).json().code).toBe('not_found')
  })

  test.each(['text/plain', 'application/xml', 'text/html; charset=utf-8', 'application/jsonp', 'x'])(
    'a body of type %s is a 415',
    async (type) => {
      expect((await sendText('{"name":"x"}', type)).json().code).toBe('unsupported_media_type')
    },
  )

  test('an unknown path is a 404 and a wrong method a 405, for any body', async () => {
    for (const [payload, type] of [
      ['{', 'application/json'],
      ['<x/>', 'application/xml'],
      ['a=1', 'application/x-www-form-urlencoded'],
      ['x'.repeat(70_000), 'application/json'],
    ] as const) {
      const headers = { 'content-type': type }
      expect((await send('PUT', THING, { payload, headers })).json()).toMatchObject({ status: 405 })
      expect((await send('POST', '/nothing', { payload, headers })).json()).toMatchObject({ status: 404 })
    }
  })

  test('an unexpected error answers a fixed text without SQL, stack or constraint, is logged, and rolls back', async () => {
    const response = await send('POST', `${THING}/break`)
    expect(response.statusCode).toBe(500)
    expect(response.body).not.toMatch(/role|insert|duplicate|constraint|half done|\.ts|node_modules|\bat /)
    expect(logged.join('')).toContain('role_pkey')
    const rows = await database.db.selectFrom('role').select('name').where('name', '=', 'half done').execute()
    expect(rows).toEqual([])
  })

  test.each([
    ['bytes that are not HTTP', 'SSH-2.0-OpenSSH_9.9\r\n\r\n', 400, 'malformed_request'],
    ['an invalid header', 'GET / HTTP/1.1\r\nhost: a\r\nno colon\r\n\r\n', 400, 'malformed_request'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'malformed_request'],
    ['headers over 16 KiB', `GET / HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
    ['an address over 16 KiB', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nhost: a\r\n\r\n`, 431, 'headers_too_large'],
  ])('%s: the answer is a problem, and the connection is closed', async (_, bytes, status, code) => {
    const { head, body } = await sendBytes(bytes)
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [A-Z]`))
    expect(body).toMatchObject({ status, code, request_id: expect.stringMatching(/^[0-9a-f-]{36}$/) })
    expect(head).toContain(`x-request-id: ${body.request_id}`)
  })
})

/** Writes bytes to a new connection and reads the answer to its end. */
async function sendBytes(bytes: string) {
  const { port } = sample.server.server.address() as AddressInfo
  const answer = await new Promise<string>((resolve) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('close', () => resolve(text))
  })
  const [head = '', body = ''] = answer.split('\r\n\r\n', 2)
  return { head, body: body === '' ? undefined : JSON.parse(body) }
}

describe('a method that no route has', () => {
  const words = ['FOO', 'get', 'Get', 'DESCRIBE', 'ANNOUNCE', 'PROPFINDX', 'X', "!#$%&'*+.^_`|~-", 'A'.repeat(64)]
  const methods = [...METHODS, ...words].filter((method) => !['GET', 'HEAD', 'POST'].includes(method))

  test.each(methods)('%s is a 405 with Allow on a known path, and a 404 on any other', async (method) => {
    const request = (path: string) => `${method} ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`
    const known = await sendBytes(request(THING))
    expect(known.head).toMatch(/^HTTP\/1\.1 405 Method Not Allowed\r\n/)
    expect(known.head.toLowerCase()).toContain('\r\nallow: get, head, post')
    const unknown = await sendBytes(request('/nothing'))
    expect(unknown.head).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/)
    expect(known.body).toMatchObject({ status: 405, code: 'method_not_allowed' })
    expect(unknown.body).toMatchObject({ status: 404, code: 'not_found' })
  })

  test.each([
    ['with a query', `${THING}?a=/b`],
    ['with an id in it', '/api/v3/sample/thing/me'],
    ['with escapes', '/api/v3/sample/%74hing'],
    ['in absolute form', `http://service.test${THING}`],
  ])('is a 405 on a known path %s', async (_, target) => {
    for (const method of ['FOO', 'PUT', 'PROPFIND']) {
      const { head } = await sendBytes(`${method} ${target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`)
      expect(head).toMatch(/^HTTP\/1\.1 405 /)
    }
  })

  test('is answered after the requests before it on the connection, or not at all', async () => {
    const get = `GET ${THING} HTTP/1.1\r\nhost: a\r\n\r\n`
    const { head } = await sendBytes(`${get}FOO ${THING} HTTP/1.1\r\nhost: a\r\n\r\n`)
    expect(head).toMatch(/^(?:HTTP\/1\.1 401 [\s\S]*)?$/)
  })
})

describe('bodies', () => {
  test.each([
    ['a missing member', {}, 'name', 'required'],
    ['an unknown member', { name: 'a', nmae: 'b' }, 'nmae', 'unknown_member'],
    ['an unknown member inside', { name: 'a', note: { text: 'b', more: 1 } }, 'note.more', 'unknown_member'],
    ['a wrong type, not coerced', { name: 5 }, 'name', 'type'],
    ['null', { name: null }, 'name', 'type'],
    ['too short', { name: '' }, 'name', 'minLength'],
    ['too long', { name: 'x'.repeat(101) }, 'name', 'maxLength'],
    ['a list', [], '', 'type'],
  ])('%s is a 422 that names it', async (_, payload, path, code) => {
    const response = await send('POST', THING, { payload })
    expect(response.json()).toMatchObject({ status: 422, code: 'validation_failed', errors: [{ path, code }] })
  })

  test('a length counts characters, not UTF-16 units', async () => {
    expect((await send('POST', THING, { payload: { name: '😀'.repeat(100) } })).statusCode).toBe(201)
    expect((await send('POST', THING, { payload: { name: '😀'.repeat(101) } })).statusCode).toBe(422)
  })

  test.each(['', 'null', '5', '"text"', 'true'])('the JSON %j instead of an object is a 422', async (text) => {
    expect((await sendText(text)).json().code).toBe('validation_failed')
  })

  test('a 422 lists all broken rules', async () => {
    expect((await send('POST', THING, { payload: { nmae: 1, note: {} } })).json().errors).toHaveLength(3)
  })

  test('members of a body are a 422 on a route that takes none', async () => {
    const id = await createThing('bodyless')
    const response = await send('POST', `${THING}/${id}/test`, { payload: { force: true } })
    expect(response.json()).toMatchObject({ status: 422, errors: [{ path: 'force', code: 'unknown_member' }] })
  })

  test.each([
    ['cut off', '{"name":"a"'],
    ['two values', '{"name":"a"}{}'],
    ['a trailing comma', '{"name":"a",}'],
    ['single quotes', "{'name':'a'}"],
    ['NaN', '{"name":NaN}'],
    ['invalid UTF-8', Buffer.from('7b226e616d65223a22ff227d', 'hex')],
    ['UTF-16', Buffer.from('{"name":"a"}', 'utf16le')],
    ['__proto__', '{"name":"a","__proto__":{"admin":true}}'],
    ['__proto__ in escapes', '{"name":"a","\\u005f_proto__":{"admin":true}}'],
    ['U+0000', '{"name":"a\\u0000b"}'],
    ['half a surrogate pair', '{"name":"\\ud83d"}'],
    ['nesting without end', `{"name":${'['.repeat(30_000)}${']'.repeat(30_000)}}`],
  ])('%s is a 400', async (_, text) => {
    expect((await sendText(text)).json()).toMatchObject({ status: 400, code: 'malformed_request' })
  })

  test('a byte order mark is skipped; the last of two equal members counts, as in JSON.parse', async () => {
    expect((await sendText('\ufeff{"name":"marked"}')).json().data.name).toBe('marked')
    expect((await sendText('{"name":"one of two","name":"two of two"}')).json().data.name).toBe('two of two')
  })

  test('constructor and prototype are unknown members', async () => {
    const response = await sendText('{"name":"a","constructor":{"prototype":{"admin":true}}}')
    expect(response.json().errors).toMatchObject([{ path: 'constructor', code: 'unknown_member' }])
    expect(({} as { admin?: boolean }).admin).toBeUndefined()
  })
})

describe('query strings', () => {
  test.each([
    ['limit=5', 'limit'],
    ['page_size=0', 'page_size'],
    ['page_size=201', 'page_size'],
    ['page_size=x', 'page_size'],
    ['page_size=1&page_size=2', 'page_size'],
    ['sort=is_system', 'sort'],
    ['count=maybe', 'count'],
    ['cursor=x', 'cursor'],
    ['filters=nope|eq|1', 'filters.0'],
    ['filters=name|eq|a&filters=name|is|b', 'filters.1'],
    ['__proto__=1', '__proto__'],
  ])('%s is a 422 that names %s', async (query, path) => {
    const response = await send('GET', `${THING}?${query}`)
    expect(response.json()).toMatchObject({ status: 422, code: 'validation_failed', errors: [{ path }] })
  })

  test('the filters parameter may be repeated', async () => {
    await createThing('filtered')
    const once = await send('GET', `${THING}?filters=name%7Ceq%7Cfiltered`)
    const twice = await send('GET', `${THING}?filters=name|eq|filtered&filters=is_system|eq|false`)
    expect([once.json().data.length, twice.json().data.length]).toEqual([1, 1])
  })
})

describe('request ids', () => {
  test.each(['a', 'A-z_0.9', 'x'.repeat(128)])('%s is accepted and echoed', async (id) => {
    const response = await send('GET', MISSING, { headers: { 'x-request-id': id } })
    expect(response.headers['x-request-id']).toBe(id)
    expect(response.json().request_id).toBe(id)
  })

  test.each(['', 'x'.repeat(129), 'a b', 'a/b', 'é', '<script>', 'a,b', '{"a":1}'])(
    '%j is replaced by a generated one',
    async (id) => {
      const response = await send('GET', MISSING, { headers: { 'x-request-id': id } })
      expect(response.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/)
      expect(response.json().request_id).toBe(response.headers['x-request-id'])
    },
  )

  test('each request has one line in the log with its id, and never a query value or a token', async () => {
    await send('GET', `${THING}?filters=name|eq|confidential`, { headers: { 'x-request-id': 'look-me-up' } })
    const lines = logged.filter((line) => line.includes('look-me-up'))
    expect(lines).toHaveLength(1)
    expect(lines[0]!.match(/request_id/g)).toHaveLength(1)
    expect(JSON.parse(lines[0]!)).toMatchObject({
      request_id: 'look-me-up',
      method: 'GET',
      route: THING,
      status: 200,
      user: 'admin',
    })
    expect(lines[0]).not.toMatch(/confidential|Bearer/)
  })
})

describe('a transaction that the database aborted', () => {
  test.each(['40P01', '40001'])('is a 503 with Retry-After for %s', (code) => {
    const lines: unknown[] = []
    const request = { log: { warn: (line: unknown) => lines.push(line), error: (line: unknown) => lines.push(line) } }
    const problem = toProblem(Object.assign(new Error('deadlock detected'), { code }), request as never)
    expect(problem).toMatchObject({ code: 'dependency_unavailable', status: 503, headers: { 'retry-after': '1' } })
    expect(problem.detail).not.toContain('deadlock')
    expect(lines).toHaveLength(1)
  })
})

describe('a database that does not do what it is asked', () => {
  test.each([
    ['57014', 'canceling statement due to statement timeout'],
    ['25006', 'cannot execute INSERT in a read-only transaction'],
    ['55000', 'database "signalbox" is not currently accepting connections'],
    ['25P03', 'terminating connection due to idle-in-transaction timeout'],
    ['DATABASE_REFUSED', 'the database did not answer the last callers'],
  ])('is a 503 with Retry-After for %s, without its words', (code, message) => {
    const lines: unknown[] = []
    const request = { log: { error: (line: unknown) => lines.push(line) } }
    const problem = toProblem(Object.assign(new Error(message), { code }), request as never)
    expect(problem).toMatchObject({ code: 'dependency_unavailable', status: 503, headers: { 'retry-after': '5' } })
    expect(problem.detail).not.toContain(message)
    expect(lines).toHaveLength(1)
  })

  test('a statement that takes longer than its limit is a 503, and the connection goes on', async () => {
    await using database = await createTestDatabase({ content: 'empty' })
    const { connectionString } = database
    const pool = { connectionString, size: 1, applicationName: 'test', onError: () => {} }
    const opened = openDatabase({ ...pool, limits: { statementMs: 50 } })
    const error = await sql`select pg_sleep(60)`.execute(opened.db).catch((fault: unknown) => fault)
    const request = { log: { error: () => {} } }
    expect(toProblem(error, request as never)).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
    expect((await sql`select 1 as one`.execute(opened.db)).rows).toEqual([{ one: 1 }])
    await opened.close()
  })
})

describe('without a database', () => {
  test('reads and changes answer 503 with Retry-After and without details of the database server', async () => {
    const closed = openDatabase({
      connectionString: 'postgres://nobody@127.0.0.1:1/none',
      size: 1,
      applicationName: 'test',
      onError: () => {},
    })
    const away = await buildPipelineServer({ db: closed.db })
    for (const [method, url] of [
      ['GET', THING],
      ['POST', THING],
    ] as const) {
      const response = await away.server.inject({
        method,
        url,
        headers: { authorization: 'Bearer admin' },
        ...(method === 'POST' && { payload: { name: 'a' } }),
      })
      expect(response.statusCode).toBe(503)
      expect(Number(response.headers['retry-after'])).toBeGreaterThan(0)
      expect(response.json().code).toBe('dependency_unavailable')
      expect(response.body).not.toMatch(/127\.0\.0\.1|ECONNREFUSED|postgres:/)
    }
    await away.server.close()
    await closed.close()
  })
})

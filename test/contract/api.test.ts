import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import pino from 'pino'
import { expect, test } from 'vitest'
import { VARIABLES } from '../../src/app/config/config-variables.ts'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import { eventNameOf, isChange, operationIdOf, type RouteDeclaration } from '../../src/http/route/route.ts'
import { SIGNATURE_TOLERANCE_SECONDS } from '../../src/outbound/signature.ts'
import { openDatabase } from '../../src/postgres/statement/database.ts'
import { AUTO_DISABLE_AFTER_FAILURES } from '../../src/webhook/delivery/failure-count.ts'
import { MAX_SCHEDULED_ATTEMPTS } from '../../src/webhook/delivery/outcome.ts'
import { createTestApp } from '../harness/app/app.ts'
import { createTestDatabase } from '../harness/database/database.ts'
import { startDatabaseProxy } from '../harness/fakes/proxy.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { expectProblem, type Json, NO_ONE } from './contract-fixture.ts'

const ROUTES: readonly RouteDeclaration[] = ROUTE_TREE
const WEBHOOKS = '/api/v3/webhook/webhook'
const ROOT = join(import.meta.dirname, '..', '..')
const lines: Json[] = []

const stream = new Writable({
  write: (chunk, _encoding, done) => {
    lines.push(JSON.parse(String(chunk)))
    done()
  },
})
const app = await openForFile(createTestApp({ logger: pino({ level: 'info' }, stream) }))

const raw = (method: 'GET' | 'POST' | 'PUT', url: string, headers: Record<string, string>, payload?: string) =>
  app.app.server.inject({ method, url, headers, ...(payload !== undefined && { payload }) })

test('api#paths: every route of the tree is under /api/v3, and other versions are a 404', async () => {
  for (const route of ROUTES) expect(route.path).toMatch(/^\/api\/v3\//)
  for (const version of ['v1', 'v2', 'v4'])
    expectProblem(await app.admin('GET', WEBHOOKS.replace('v3', version)), 404, 'not_found')
})

test('api#names: the product, the command and the packages have their names', async () => {
  const read = async (path: string) => JSON.parse(await readFile(join(ROOT, path), 'utf8'))
  expect(await read('package.json')).toMatchObject({ name: 'signalbox', bin: { signalbox: expect.any(String) } })
  expect((await read('packages/webhooks/package.json')).name).toBe('@signalbox/webhooks')
  expect((await app.anonymous('GET', '/openapi.json')).body.info.title).toContain('Signalbox')
})

test('api#errors: every refusal is application/problem+json with type, title, status, code, detail and request_id', async () => {
  const { body, headers } = await app.anonymous('GET', WEBHOOKS)
  expect(headers['content-type']).toContain('application/problem+json')
  expect(Object.keys(body).sort()).toEqual(['code', 'detail', 'request_id', 'status', 'title', 'type'])
  expect(body.request_id).toBe(headers['x-request-id'])
  const page = await app.anonymous('GET', new URL(body.type).pathname)
  expect(page.status).toBe(200)
  expect(page.body).toContain('unauthenticated')
})

test('api#errors: a problem has the same words in every language, and a code by which an app chooses its own', async () => {
  const body = { email: 'nobody@example.com', password: 'not the password' }
  const requests = [
    ['POST', '/api/v3/auth/login/local', body],
    ['POST', '/api/v3/auth/login/local', { email: 1 }],
    ['GET', '/api/v3/auth/login/oauth/nothing?redirect_url=https%3A%2F%2Fa.example%2F', undefined],
    ['POST', '/api/v3/auth/login/code', { code: 'x', code_verifier: 'v'.repeat(43) }],
  ] as const
  for (const [method, path, sent] of requests) {
    const ask = async (language: string) => {
      const answer = await app.anonymous(method, path, sent, { 'accept-language': language })
      const { request_id: _, ...problem } = answer.body
      return problem
    }
    const english = await ask('en')
    expect(english.code).toMatch(/^[a-z_]+$/)
    expect(await ask('de')).toEqual(english)
  }
})

test('api#errors: 400 malformed JSON', async () => {
  for (const payload of ['{', '{"url":', 'null,', '{"a":1}}', '\u0000'])
    expectProblem(await app.admin('POST', WEBHOOKS, payload), 400, 'malformed_request')
})

test('api#errors, identity#system-roles: 401 unauthenticated comes with WWW-Authenticate: Bearer', async () => {
  for (const authorization of [
    undefined,
    'Bearer',
    'Bearer no.such.token',
    `Basic ${app.adminToken}`,
    app.adminToken,
    'Bearer sbx_forged',
  ]) {
    const answer = await app.anonymous('GET', WEBHOOKS, undefined, authorization === undefined ? {} : { authorization })
    expectProblem(answer, 401, 'unauthenticated')
    expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
  }
})

test('api#errors: 403 permission_denied names the missing permission', async () => {
  const { call } = await app.signInMember()
  const problem = expectProblem(await call('GET', WEBHOOKS), 403, 'permission_denied')
  expect(problem.detail).toContain('webhook:find-all')
})

test('api#errors: 404 not_found for a path and for an id, 405 with Allow for a method', async () => {
  expectProblem(await app.admin('GET', '/api/v3/no/such'), 404, 'not_found')
  expectProblem(await app.admin('GET', `${WEBHOOKS}/${NO_ONE}`), 404, 'not_found')
  expectProblem(await app.admin('GET', `${WEBHOOKS}/no-uuid`), 404, 'not_found')
  const answer = await app.admin('PUT', `${WEBHOOKS}/${NO_ONE}`)
  expectProblem(answer, 405, 'method_not_allowed')
  expect(String(answer.headers.allow).split(', ').sort()).toEqual(expect.arrayContaining(['DELETE', 'GET', 'PATCH']))
})

test('api#methods: HEAD answers like GET without a body on every path whose GET only reads', async () => {
  const ask = (method: 'GET' | 'HEAD', url: string) =>
    app.app.server.inject({ method, url, headers: { authorization: `Bearer ${app.adminToken}` } })
  const read = ROUTES.filter((route) => route.method === 'GET' && !isChange(route)).map(({ path }) => path)
  for (const path of [...read, '/livez', '/readyz', '/metrics', '/openapi.json', '/docs', '/docs/errors/not_found']) {
    const url = path.replace('{id}', NO_ONE)
    const [get, head] = [await ask('GET', url), await ask('HEAD', url)]
    expect([head.statusCode, head.body], path).toEqual([get.statusCode, ''])
    // RFC 9110 section 9.3.2: HEAD may omit what only generating the content determines.
    const names = Object.keys(get.headers).filter((name) => name !== 'transfer-encoding')
    expect(Object.keys(head.headers).sort(), path).toEqual(names.sort())
  }
  const document = (await app.anonymous('GET', '/openapi.json')).body
  expect(Object.values<Json>(document.paths).filter((item) => 'head' in item)).toEqual([])
})

test('api#client-address: the client address is the rightmost one that is not a trusted proxy, and an invalid entry is ignored', async () => {
  for (const [TRUST_PROXY, forwarded, address] of [
    ['false', '203.0.113.9', '127.0.0.1'],
    ['1', '198.51.100.1, 203.0.113.9', '203.0.113.9'],
    ['loopback,10.0.0.0/8', '198.51.100.1, 203.0.113.9, 10.0.0.7', '203.0.113.9'],
    ['1', '203.0.113.9, unknown', '127.0.0.1'],
  ] as const) {
    await using proxied = await createTestApp({ env: { TRUST_PROXY } })
    const headers = { 'x-forwarded-for': forwarded }
    const { document_id } = (await proxied.admin('POST', '/api/v3/identity/account', { name: 'A' }, headers)).body.data
    const log = await proxied.admin('GET', `/api/v3/audit/log?filters=target|eq|${document_id}`)
    expect(log.body.data, forwarded).toMatchObject([{ address }])
  }
})

test('api#bounds: a body of 64 KiB, for publish 1 MiB, is accepted, and one byte more is 413 with the limit', async () => {
  const build = (bytes: number) => JSON.stringify({ name: 'x'.repeat(bytes - '{"name":""}'.length) })
  for (const [path, limit, words] of [
    [WEBHOOKS, 65_536, '64 KiB'],
    ['/api/v3/webhook/publish', 1_048_576, '1 MiB'],
  ] as const) {
    expectProblem(await app.admin('POST', path, build(limit)), 422, 'validation_failed')
    const refused = expectProblem(await app.admin('POST', path, build(limit + 1)), 413, 'body_too_large')
    expect(refused.detail).toContain(words)
  }
})

test('api#bounds: at most 50 broken rules are named', async () => {
  const body = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`m${index}`, index]))
  const problem = expectProblem(await app.admin('POST', WEBHOOKS, body), 422, 'validation_failed')
  expect(problem.errors).toHaveLength(50)
})

test('api#bounds: instants lie between the years 1970 and 9999 in UTC, in bodies and in filters', async () => {
  for (const instant of ['9999-12-31T23:59:59-23:59', '1970-01-01T00:00:00+00:01', '10000-01-01T00:00:00Z']) {
    const body = { name: 'key', permissions: ['webhook:find-all'], expires_at: instant }
    expectProblem(await app.admin('POST', '/api/v3/identity/api-key', body), 422, 'validation_failed')
    const query = `filters=${encodeURIComponent(`created_at|lt|${instant}`)}`
    expectProblem(await app.admin('GET', `${WEBHOOKS}?${query}`), 422, 'validation_failed')
  }
})

test('api#errors: 415 for another content type', async () => {
  const answer = await app.admin('POST', WEBHOOKS, 'url=https://a.example/', {
    'content-type': 'application/x-www-form-urlencoded',
  })
  expectProblem(answer, 415, 'unsupported_media_type')
})

test('api#errors: 422 lists every invalid member by path, code and message, also unknown members', async () => {
  const body = { url: 'https://hooks.example.com/', is_global: 'yes', colour: 'red', name: 7 }
  const problem = expectProblem(await app.admin('POST', WEBHOOKS, body), 422, 'validation_failed')
  expect(problem.errors.map((error: Json) => error.path).sort()).toEqual(
    expect.arrayContaining(['colour', 'is_global', 'name']),
  )
  for (const error of problem.errors)
    expect(error).toEqual({
      path: expect.any(String),
      code: expect.stringMatching(/^[a-z_]+$/),
      message: expect.stringMatching(/\S/),
      ...(error.code === 'type' && { params: { types: expect.arrayContaining([expect.any(String)]) } }),
    })
})

test('api#errors: 429 with Retry-After once the limit of a minute is spent', async () => {
  await using limited = await createTestApp({ env: { RATE_LIMIT_PER_MINUTE: '2' } })
  const read = () => limited.anonymous('GET', '/api/v3/health')
  for (const remaining of [1, 0]) {
    const answer = await read()
    expect(answer.status).toBe(200)
    expect(String(answer.headers.ratelimit)).toContain(`r=${remaining}`)
  }
  const answer = await read()
  expectProblem(answer, 429, 'rate_limited')
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  limited.clock.advance(Number(answer.headers['retry-after']) * 1_000)
  expect((await read()).status).toBe(200)
})

test('api#rate-limits: every path has a limit: the reference, the probes, the metrics, and paths that do not exist', async () => {
  for (const path of ['/docs', '/docs/webhook', '/openapi.json', '/livez', '/readyz', '/metrics', '/no/such/path']) {
    await using limited = await createTestApp({ env: { RATE_LIMIT_PER_MINUTE: '1', APP_ENV: 'development' } })
    expect((await limited.anonymous('GET', path)).status, path).toBe(path === '/no/such/path' ? 404 : 200)
    const answer = await limited.anonymous('GET', path)
    expectProblem(answer, 429, 'rate_limited')
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  }
})

test('api#rate-limits: the limits are shared between processes, and strict on sign-in', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const env = { RATE_LIMIT_STRICT_PER_MINUTE: '3' }
  await using app = await createTestApp({ database, env })
  await using two = await createTestApp({ database, env })
  const body = { email: 'nobody@example.com', password: 'wrong password' }
  const statuses: number[] = []
  for (const process of [app, two, app, two]) {
    statuses.push((await process.anonymous('POST', '/api/v3/auth/login/local', body)).status)
  }
  expect(statuses).toEqual([401, 401, 401, 429])
  expect((await app.admin('GET', WEBHOOKS)).status).toBe(200)
})

test('api#errors: 503 with Retry-After when the database is down, without a stack or an SQL text', async () => {
  await using database = await createTestDatabase()
  await using proxy = await startDatabaseProxy(database.connectionString)
  const pool = {
    connectionString: proxy.connectionString,
    size: 4,
    applicationName: 'signalbox test',
    onError: () => {},
  }
  const behindProxy = {
    ...openDatabase(pool),
    connectionString: proxy.connectionString,
    [Symbol.asyncDispose]: async () => {},
  }
  await using down = await createTestApp({ database: behindProxy })
  expect((await down.admin('GET', WEBHOOKS)).status).toBe(200)
  proxy.set('refusing')
  for (const path of [WEBHOOKS, '/api/v3/health']) {
    const answer = await down.admin('GET', path)
    expectProblem(answer, 503, 'dependency_unavailable')
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
    expect(JSON.stringify(answer.body)).not.toMatch(/select|kysely|postgres|\.ts/i)
  }
  expect((await down.anonymous('GET', '/readyz')).status).toBe(503)
  expect((await down.anonymous('GET', '/livez')).status).toBe(200)
  proxy.set('open')
  expect((await down.admin('GET', WEBHOOKS)).status).toBe(200)
  await behindProxy.close()
})

test('api#errors: checks run in the order 401, 403, 404, 422, 409', async () => {
  const { call: member } = await app.signInMember()
  const gone = `${WEBHOOKS}/${NO_ONE}`
  const bad = { name: 7 }
  expect((await app.anonymous('PATCH', gone, bad)).status).toBe(401)
  expect((await member('PATCH', gone, bad)).status).toBe(403)
  expect((await app.admin('PATCH', gone, bad)).status).toBe(404)
  const body = { url: 'https://hooks.example.com/', is_global: true }
  const { document_id: id } = (await app.admin('POST', WEBHOOKS, body)).body.data
  expect((await app.admin('PATCH', `${WEBHOOKS}/${id}`, bad)).status).toBe(422)
  const [test] = (await app.admin('GET', '/api/v3/webhook/event?filters=internal|eq|webhook.test')).body.data
  const link = { webhook: id, event: test.document_id }
  expect((await app.admin('POST', '/api/v3/webhook/webhook-event', { ...link, more: 1 })).status).toBe(422)
  expect((await app.admin('POST', '/api/v3/webhook/webhook-event', link)).status).toBe(409)
})

test('api#request-ids: a valid X-Request-Id is kept, another one replaced; it is echoed and in every log line and problem', async () => {
  const given = 'abc.DEF_123-x'
  const taken = await app.admin('GET', `${WEBHOOKS}/${NO_ONE}`, undefined, { 'x-request-id': given })
  expect(taken.headers['x-request-id']).toBe(given)
  expect(taken.body.request_id).toBe(given)
  expect(JSON.stringify(lines.filter((line) => JSON.stringify(line).includes(given)))).toContain('"status":404')
  expect(
    (await app.admin('GET', WEBHOOKS, undefined, { 'x-request-id': 'a'.repeat(128) })).headers['x-request-id'],
  ).toBe('a'.repeat(128))
  for (const bad of ['a'.repeat(129), 'has space', 'semi;colon', 'ünïcode', '']) {
    const made = await app.admin('GET', WEBHOOKS, undefined, { 'x-request-id': bad })
    expect(made.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,128}$/)
    expect(made.headers['x-request-id']).not.toBe(bad)
  }
})

test('api#idempotency: a key belongs to one caller and one route, and expires after 24 h', async () => {
  await using fresh = await createTestApp()
  const key = { 'idempotency-key': 'same' }
  const create = (name: string) => fresh.admin('POST', '/api/v3/identity/account', { name }, key)
  const first = await create('A')
  expect((await create('A')).headers['idempotency-replayed']).toBe('true')
  const role = await fresh.admin('POST', '/api/v3/identity/role', { name: 'r', permissions: [] }, key)
  expect(role.status).toBe(201)
  const other = await fresh.admin('POST', '/api/v3/identity/api-key', { name: 'k', permissions: ['*:*'] })
  const member = await fresh.signInMember()
  const roles = (await fresh.admin('GET', '/api/v3/identity/role?filters=name|eq|administrator')).body.data
  await fresh.admin('PATCH', `/api/v3/identity/user/${member.userId}`, { roles: [roles[0].document_id] })
  const byOther = await member.call('POST', '/api/v3/identity/account', { name: 'A' }, key)
  expect(byOther.status).toBe(201)
  expect(byOther.body.data.document_id).not.toBe(first.body.data.document_id)
  const program = fresh.callAs(other.body.data.key)
  const repeat = () => program('POST', '/api/v3/identity/account', { name: 'A' }, { 'idempotency-key': 'later' })
  const { document_id: id } = (await repeat()).body.data
  fresh.clock.advance(24 * 3_600_000 - 1)
  expect((await repeat()).body.data.document_id).toBe(id)
  fresh.clock.advance(2)
  const later = await repeat()
  expect(later.status).toBe(201)
  expect(later.body.data.document_id).not.toBe(id)
})

test('api#route-declaration: permission, event, operationId and path follow from one declaration, each only once', async () => {
  const document = (await app.anonymous('GET', '/openapi.json')).body
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods as Json).map(([method, operation]: [string, Json]) => ({
      path,
      method: method.toUpperCase(),
      id: operation.operationId,
    })),
  )
  for (const route of ROUTES) {
    const found = operations.filter((operation) => operation.path === route.path && operation.method === route.method)
    expect(found, route.path).toEqual([{ path: route.path, method: route.method, id: operationIdOf(route) }])
    expect(route.path, '').toMatch(
      /^\/api\/v3\/[a-z-]+(\/[a-z-]+|\/\{(?:id|connection|domain|identity|invitation|name|picture|provider|secret|session)\})*$/,
    )
  }
  expect(new Set(ROUTES.map(operationIdOf)).size).toBe(ROUTES.length)
  expect(new Set(ROUTES.map(eventNameOf)).size).toBe(ROUTES.length)
})

test('api#errors: no answer and no log line contains a secret', async () => {
  const created = await app.admin('POST', WEBHOOKS, { url: 'https://hooks.example.com/', is_global: true })
  const login = { email: 'nobody@example.com', password: 'a very secret phrase' }
  const refused = await app.anonymous('POST', '/api/v3/auth/login/local', login)
  const text = JSON.stringify(lines) + JSON.stringify(refused.body)
  for (const secret of [created.body.data.secret.slice(6), login.password, app.adminToken])
    expect(text).not.toContain(secret)
})

test('api#errors: answers have Cache-Control: no-store', async () => {
  for (const answer of [await app.admin('GET', WEBHOOKS), await app.anonymous('GET', WEBHOOKS)])
    expect(answer.headers['cache-control']).toContain('no-store')
})

test('api#errors: a body that is not UTF-8 JSON text is a 400', async () => {
  const headers = { authorization: `Bearer ${app.adminToken}`, 'content-type': 'application/json' }
  const answer = await raw('POST', WEBHOOKS, headers, '{"url":"\\ud800"}')
  expect(answer.statusCode).toBe(400)
})

test('delivery#fixed-constants: no variable changes tolerance, backoff, attempt cap and auto-disable threshold', () => {
  const names = Object.keys(VARIABLES)
  expect(
    names.filter(
      (name) =>
        name !== 'SHUTDOWN_DELAY_SECONDS' &&
        /RETR|BACKOFF|DELAY|ATTEMPT|TOLERANCE|THRESHOLD|DISABLE_AFTER|FAILURES/.test(name),
    ),
  ).toEqual([])
  expect([SIGNATURE_TOLERANCE_SECONDS, MAX_SCHEDULED_ATTEMPTS, AUTO_DISABLE_AFTER_FAILURES]).toEqual([300, 5, 20])
})

import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { startReceiver } from '../../../test/harness/fakes/receiver.ts'
import { PROJECT_ROOT, runToEnd } from '../../../test/harness/process/process.ts'
import { buildLogOptions } from './logger.ts'

/** Writes a line and parses it. */
function logOnce(write: (log: pino.Logger) => void) {
  const lines: string[] = []
  write(pino(buildLogOptions('info'), { write: (line: string) => void lines.push(line) }))
  return { text: lines.join(''), line: JSON.parse(lines[0] ?? '{}') }
}

describe('a line of the log', () => {
  test.each([
    'authorization',
    'cookie',
    'password',
    'secret',
    'signature',
    'x-service-signature',
    'webhook-signature',
    'token',
    'access_token',
    'refresh_token',
    'refreshToken',
    'jwt',
    'body',
  ])('hides %s at the top, in nested members, and in lists', (name) => {
    const { text, line } = logOnce((log) =>
      log.info({ [name]: 'hidden-1', a: { [name]: 'hidden-2', b: { [name]: { c: 'hidden-3' } } }, d: [{ [name]: 4 }] }),
    )
    expect(text).not.toContain('hidden')
    expect(line).toMatchObject({
      [name]: '[Redacted]',
      a: { b: { [name]: '[Redacted]' } },
      d: [{ [name]: '[Redacted]' }],
    })
  })

  test('hides query and values of a driver error, and keeps its code and message', () => {
    const error = Object.assign(new Error('duplicate key'), {
      code: '23505',
      query: 'insert into x values ($1)',
      parameters: ['hidden'],
      config: { password: 'hidden' },
    })
    const { text, line } = logOnce((log) => log.error({ err: error }, 'unexpected error'))
    expect(text).not.toContain('hidden')
    expect(text).not.toContain('insert into')
    expect(line.err).toMatchObject({ type: 'Error', message: 'duplicate key', code: '23505' })
    expect(line.err.stack).toContain('logger.slow.test.ts')
  })

  test('keeps other values unchanged', () => {
    const members = {
      dispatch: 'd',
      attempt: 1,
      error: null,
      ok: true,
      none: undefined,
      list: [1, 'two', null],
      at: new Date('2026-09-11T12:00:00.000Z'),
      deep: { deeper: { deepest: 'x' } },
    }
    const { line } = logOnce((log) => log.info(members, 'attempt'))
    expect(line.time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(line).toMatchObject({
      level: 'info',
      service: 'signalbox',
      msg: 'attempt',
      dispatch: 'd',
      attempt: 1,
      error: null,
      ok: true,
      list: [1, 'two', null],
      at: '2026-09-11T12:00:00.000Z',
      deep: { deeper: { deepest: 'x' } },
    })
  })

  test('may contain a circular reference', () => {
    const loop: Record<string, unknown> = { secret: 'hidden' }
    loop.self = loop
    expect(() => logOnce((log) => log.info({ loop }, 'a loop'))).not.toThrow()
  })
})

test('the log writes JSON lines from its level on to standard error, and nothing to standard output', async () => {
  const program = `
    import { buildLogger } from ${JSON.stringify(join(PROJECT_ROOT, 'src', 'app', 'log', 'logger.ts'))}
    const log = buildLogger({ level: 'warn', isTerminal: false })
    log.info('too quiet')
    log.warn({ password: 'hidden' }, 'loud enough')`
  const { code, stdout, stderr } = await runToEnd({ args: ['--input-type=module', '-e', program] })
  expect(code).toBe(0)
  expect(stdout).toBe('')
  const lines = stderr
    .trim()
    .split('\n')
    .filter((line) => line.startsWith('{'))
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ msg: 'loud enough', password: '[Redacted]' }])
})

test('on a terminal each entry is one line, of a request with its method, its route or path, and its status', async () => {
  const program = `
    import { buildLogger } from ${JSON.stringify(join(PROJECT_ROOT, 'src', 'app', 'log', 'logger.ts'))}
    import { once } from 'node:events'
    import pino from ${JSON.stringify(join(PROJECT_ROOT, 'node_modules', 'pino', 'pino.js'))}
    const log = buildLogger({ level: 'info', isTerminal: true })
    const stream = log[pino.symbols.streamSym]
    // The thread that writes does not keep the process alive.
    const alive = setInterval(() => {}, 60_000)
    await once(stream, 'ready')
    log.info({ method: 'GET', route: '/api/v3/health', status: 200, duration_ms: 3, user: null }, 'request')
    log.info({ method: 'GET', route: null, path: '/nothing', status: 404, code: 'not_found' }, 'request')
    log.warn({ settings: { METRICS_TOKEN: 'in development' } }, 'settings without effect')
    stream.end()
    await once(stream, 'close')
    clearInterval(alive)`
  const { stderr } = await runToEnd({ args: ['--input-type=module', '-e', program] })
  const lines = stripVTControlCharacters(stderr).trim().split('\n')
  expect(lines).toHaveLength(3)
  expect(lines[0]).toMatch(/INFO: request GET \/api\/v3\/health 200\b.*"duration_ms":3/)
  expect(lines[1]).toMatch(/INFO: request GET \/nothing 404\b.*"code":"not_found"/)
  expect(lines[2]).toMatch(/WARN: settings without effect\b.*METRICS_TOKEN/)
})

test('on a terminal without the pretty printer, as after an installation for production, each entry is a JSON line', async () => {
  const program = `
    import { buildLogger } from ${JSON.stringify(join(PROJECT_ROOT, 'src', 'app', 'log', 'logger.ts'))}
    const log = buildLogger({ level: 'info', isTerminal: true, findPrinter: () => undefined })
    log.info({ status: 200 }, 'request')`
  const { code, stderr } = await runToEnd({ args: ['--input-type=module', '-e', program] })
  expect(code).toBe(0)
  expect(JSON.parse(stderr.trim())).toMatchObject({ level: 'info', msg: 'request', status: 200 })
})

test('no line of a whole flow contains a secret, password, token, body or signature, even without redaction', async () => {
  const lines: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  await using receiver = await startReceiver()
  await using app = await createTestApp({
    logger,
    env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}` },
  })
  const { rows } = await app.database.pool.query('select email from "user" where document_id = $1', [app.adminId])
  const password = 'correct horse battery'
  const credentials = { email: rows[0].email, password }
  await app.anonymous('POST', '/api/v3/auth/login/local', { ...credentials, password: 'a wrong guess of somebody' })
  const login = (await app.anonymous('POST', '/api/v3/auth/login/local', credentials)).body.data
  const call = app.callAs(login.jwt)
  const refreshed = await app.anonymous('POST', '/api/v3/auth/session/refresh', { refresh_token: login.refresh_token })
  await app.callAs('a.forged.token-of-somebody')('GET', '/api/v3/webhook/webhook')

  const body = { url: `${receiver.origin}/`, is_global: true, description: 'said in a body' }
  const webhook = (await call('POST', '/api/v3/webhook/webhook', body)).body.data
  const path = `/api/v3/webhook/webhook/${webhook.document_id}`
  await call('POST', `${path}/test`)
  await app.settle()
  receiver.behaveNext({ kind: 'status', status: 500, body: 'said in an answer' }, { kind: 'reset-before-headers' })
  const rotated = (await call('POST', `${path}/rotate-secret`)).body.data
  await call('POST', `${path}/test`)
  await call('POST', `${path}/test`)
  await app.settle()
  const key = (await call('POST', '/api/v3/identity/api-key', { name: 'k', permissions: ['webhook:*'] })).body.data.key
  await app.callAs(key)('GET', path)
  await call('POST', '/api/v3/webhook/webhook', '{"url": "said in a broken body')
  // An unexpected failure logs the error of the driver.
  await app.database.pool.query('alter table contract rename to elsewhere')
  const account = (await call('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
  const failed = await call('POST', '/api/v3/contract/contract', { account, name: 'said in a failing body' })
  expect(failed.status).toBe(500)

  expect(receiver.requests).toHaveLength(3)
  for (const line of lines) {
    const members = Object.entries(JSON.parse(line) as Record<string, unknown>)
    const nested = members.flatMap(([name, value]) =>
      name === 'err' || value === null || typeof value !== 'object' ? [] : Object.keys(value),
    )
    for (const name of [...members.map(([member]) => member), ...nested]) expect(name, line).toMatch(/^[a-z0-9_]+$/)
  }
  const text = lines.join('')
  for (const message of ['"request"', '"attempt"', '"unexpected error: ']) expect(text).toContain(`"msg":${message}`)
  const signatures = receiver.requests.flatMap(({ headers }) => [
    (headers['x-service-signature'] ?? '').split('v1=')[1] ?? '',
    (headers['webhook-signature'] ?? '').slice('v1,'.length),
  ])
  const forbidden = [
    password,
    'a wrong guess',
    login.jwt,
    login.refresh_token,
    refreshed.body.data.jwt,
    refreshed.body.data.refresh_token,
    app.adminToken,
    'a.forged.token',
    webhook.secret.slice('whsec_'.length),
    rotated.secret.slice('whsec_'.length),
    'whsec_',
    key,
    'said in',
    '"api_version"',
    ...signatures,
  ]
  for (const text of forbidden) {
    expect(text.length).toBeGreaterThan(5)
    expect(lines.filter((line) => line.includes(text))).toEqual([])
  }
})

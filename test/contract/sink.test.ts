import { Writable } from 'node:stream'
import pino from 'pino'
import { expect, test } from 'vitest'
import { systemRandom } from '../../src/base/random.ts'
import { createSecret, signTimestamped } from '../../src/outbound/signature.ts'
import { buildEnvelope } from '../../src/webhook/envelope/envelope.ts'
import { createTestApp, type TestApp, type TestAppOptions } from '../harness/app/app.ts'
import { createTestDatabase } from '../harness/database/database.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { expectProblem, NO_ONE } from './contract-fixture.ts'

const SINK = '/api/v3/webhook/sink'
const SECRET = createSecret(systemRandom)

const database = await openForFile(createTestDatabase({ content: 'prepared' }))
const certification = await openForFile(
  createTestApp({ database, env: { APP_ENV: 'certification', WEBHOOK_SINK_SECRET: SECRET } }),
)

const ENVELOPE = buildEnvelope({
  event: {
    id: NO_ONE,
    type: 'contract.create',
    createdAt: new Date(0),
    account: null,
    resource: 'contract',
    action: 'create',
    resourceId: null,
    url: null,
  },
  attempt: 1,
})

/** Posts a signed envelope; `skewSeconds` moves the time of the signature. */
function postSigned(
  app: TestApp,
  options: { secret?: string; skewSeconds?: number; body?: string; signed?: string } = {},
) {
  const { secret = SECRET, skewSeconds = 0, body = ENVELOPE, signed = body } = options
  const seconds = Math.floor(app.clock.now() / 1000) + skewSeconds
  return app.anonymous('POST', SINK, body, {
    'content-type': 'application/json',
    'x-service-signature': signTimestamped(secret, seconds, signed),
  })
}

test('webhooks#sink-availability, webhooks#sink: production answers 404, with or without WEBHOOK_SINK_SECRET', async () => {
  for (const env of [{}, { WEBHOOK_SINK_SECRET: SECRET }] as Record<string, string>[]) {
    await using production = await createTestApp({ database, env: { APP_ENV: 'production', ...env } })
    expectProblem(await postSigned(production), 404, 'not_found')
    expectProblem(await production.anonymous('POST', SINK, ENVELOPE), 404, 'not_found')
    expectProblem(await production.admin('GET', SINK), 404, 'not_found')
  }
})

test('webhooks#sink-availability: the sink is mounted in development and certification only', async () => {
  const statuses: Record<string, number> = {}
  for (const env of ['development', 'certification', 'test']) {
    await using app = await createTestApp({ database, env: { APP_ENV: env, WEBHOOK_SINK_SECRET: SECRET } })
    statuses[env] = (await postSigned(app)).status
  }
  expect(statuses).toEqual({ development: 200, certification: 200, test: 404 })
})

test('webhooks#sink-availability: without a sink secret the sink is a 404', async () => {
  for (const env of ['development', 'certification']) {
    await using app = await createTestApp({ database, env: { APP_ENV: env } })
    expectProblem(await postSigned(app), 404, 'not_found')
  }
})

test('webhooks#sink: a signed envelope is answered 200 with accepted, without any token', async () => {
  const answer = await postSigned(certification)
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({ data: { accepted: true }, message: expect.any(String) })
})

test('webhooks#sink, webhooks#signature-tolerance, webhooks#signature: a signature up to 300 s off is accepted, 301 s is refused, in both directions', async () => {
  for (const skewSeconds of [-300, 300]) expect((await postSigned(certification, { skewSeconds })).status).toBe(200)
  for (const skewSeconds of [-301, 301])
    expectProblem(await postSigned(certification, { skewSeconds }), 401, 'signature_invalid')
})

test('webhooks#sink, webhooks#signature: another secret, another body, or no signature is 401', async () => {
  expectProblem(await postSigned(certification, { secret: createSecret(systemRandom) }), 401, 'signature_invalid')
  expectProblem(await postSigned(certification, { signed: `${ENVELOPE} ` }), 401, 'signature_invalid')
  expectProblem(await certification.anonymous('POST', SINK, ENVELOPE), 401, 'signature_invalid')
  const seconds = Math.floor(certification.clock.now() / 1000)
  for (const header of ['', 't=1', `t=${seconds},v1=`, `t=${seconds},v1=${'0'.repeat(64)}`, `v1=${'0'.repeat(64)}`]) {
    const answer = await certification.anonymous('POST', SINK, ENVELOPE, { 'x-service-signature': header })
    expectProblem(answer, 401, 'signature_invalid')
  }
})

test('webhooks#sink: a signed body that is not an envelope is refused', async () => {
  for (const body of ['{}', '[]', JSON.stringify({ ...JSON.parse(ENVELOPE), data: {} })])
    expect((await postSigned(certification, { body })).status, body).toBe(422)
})

/** An app in development that listens and resolves `localhost` to itself; `lines` is its log. */
async function startListening(options: TestAppOptions & { port?: number }) {
  const { port = 0, ...appOptions } = options
  const lines: Record<string, unknown>[] = []
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(JSON.parse(String(chunk)))
      done()
    },
  })
  const app = await createTestApp({
    ...appOptions,
    env: { APP_ENV: 'development', ...appOptions.env },
    logger: pino({ level: 'info' }, stream),
    lookup: async () => ['127.0.0.1'],
  })
  await app.app.server.listen({ host: '127.0.0.1', port })
  return { app, lines }
}

test('webhooks#sink, delivery#success: a test delivery to the sink succeeds with the secret in WEBHOOK_SINK_SECRET', async () => {
  const first = await startListening({ database })
  const url = `${first.app.app.baseUrl()}${SINK}`
  const { port } = new URL(url)
  const created = await first.app.admin('POST', '/api/v3/webhook/webhook', { url, is_global: true })
  expect(created.status).toBe(201)
  await first.app[Symbol.asyncDispose]()

  const { secret, document_id: id } = created.body.data
  const second = await startListening({ database, port: Number(port), env: { WEBHOOK_SINK_SECRET: secret } })
  await using app = second.app
  const test = await app.admin('POST', `/api/v3/webhook/webhook/${id}/test`)
  await app.settle()
  const { body } = await app.admin('GET', `/api/v3/webhook/dispatch/${test.body.data.dispatch_id}`)
  expect(body.data).toMatchObject({ status: 'success', attempts: 1, last_status_code: 200 })
  const accepted = second.lines.find((line) => line.msg === 'sink accepted a delivery')
  expect(accepted).toMatchObject({ x_service_event: 'webhook.test', x_service_delivery: test.body.data.dispatch_id })
  expect(JSON.stringify(second.lines)).not.toContain(secret.slice(6))
  expect(JSON.stringify(accepted)).not.toContain('v1')

  await app.admin('POST', `/api/v3/webhook/webhook/${id}/rotate-secret`)
  const after = await app.admin('POST', `/api/v3/webhook/webhook/${id}/test`)
  await app.settle()
  const refused = await app.admin('GET', `/api/v3/webhook/dispatch/${after.body.data.dispatch_id}`)
  expect(refused.body.data).toMatchObject({ status: 'retrying', last_status_code: 401 })
})

test('webhooks#callback-guard: the URL of the sink is refused in other environments', async () => {
  await using production = await createTestApp({ database, env: { APP_ENV: 'production' } })
  const url = `${production.app.baseUrl()}${SINK}`
  expectProblem(
    await production.admin('POST', '/api/v3/webhook/webhook', { url, is_global: true }),
    422,
    'validation_failed',
  )
})

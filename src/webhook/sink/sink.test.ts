import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { systemRandom } from '../../base/random.ts'
import { createSecret, signTimestamped } from '../../outbound/signature.ts'
import { buildEnvelope } from '../envelope/envelope.ts'
import { SINK_PATH } from './sink.ts'

const SECRET = createSecret(systemRandom)

const BODY = buildEnvelope({
  event: {
    id: '0198a000-0000-7000-8000-000000000001',
    type: 'contract.create',
    createdAt: new Date(Date.UTC(2026, 8, 11, 12)),
    account: null,
    resource: 'contract',
    action: 'create',
    resourceId: '0198a000-0000-7000-8000-000000000002',
    url: '/api/v3/contract/contract/0198a000-0000-7000-8000-000000000002',
  },
  attempt: 1,
})

async function openSink(env: Record<string, string>) {
  const t = await createTestApp({ env })
  const deliver = (
    options: { secret?: string; ageSeconds?: number; body?: string; header?: string | null; search?: string } = {},
  ) => {
    const { secret = SECRET, ageSeconds = 0, body = BODY, search = '' } = options
    const nowSeconds = Math.floor(t.clock.now() / 1000)
    const header =
      options.header === undefined ? signTimestamped(secret, nowSeconds - ageSeconds, body) : options.header
    return t.anonymous('POST', `${SINK_PATH}${search}`, body, header === null ? {} : { 'x-service-signature': header })
  }
  return { t, deliver, [Symbol.asyncDispose]: () => t[Symbol.asyncDispose]() }
}

const DEVELOPMENT = { APP_ENV: 'development', WEBHOOK_SINK_SECRET: SECRET }

describe('the sink', () => {
  test('accepts a body that is signed for its secret', async () => {
    await using sink = await openSink(DEVELOPMENT)
    expect(await sink.deliver()).toMatchObject({ status: 200, body: { data: { accepted: true } } })
  })

  test.each([
    [300, 200],
    [-300, 200],
    [301, 401],
    [-301, 401],
  ])('answers a signature that is %d s old with %d', async (ageSeconds, status) => {
    await using sink = await openSink(DEVELOPMENT)
    expect((await sink.deliver({ ageSeconds })).status).toBe(status)
  })

  test('refuses a foreign secret, a body that was changed, and a missing or malformed signature, all alike', async () => {
    await using sink = await openSink(DEVELOPMENT)
    const header = signTimestamped(SECRET, Math.floor(sink.t.clock.now() / 1000), BODY)
    const answers = [
      await sink.deliver({ secret: createSecret(systemRandom) }),
      await sink.deliver({ header, body: BODY.replace('"attempt":1', '"attempt":2') }),
      await sink.deliver({ header: null }),
      await sink.deliver({ header: 'v1=00' }),
    ]
    for (const answer of answers) expect(answer).toMatchObject({ status: 401, body: { code: 'signature_invalid' } })
    expect(new Set(answers.map((answer) => answer.body.detail)).size).toBe(1)
  })

  test('fails a signed delivery on request, after its signature, and takes no other request', async () => {
    await using sink = await openSink(DEVELOPMENT)
    expect(await sink.deliver({ search: '?fails=true' })).toMatchObject({ status: 503, body: { code: 'sink_fails' } })
    const unsigned = await sink.deliver({ search: '?fails=true', secret: createSecret(systemRandom) })
    expect(unsigned).toMatchObject({ status: 401, body: { code: 'signature_invalid' } })
    expect((await sink.deliver({ search: '?fails=false' })).status).toBe(422)
  })

  test('refuses a signed body that is no envelope, after its signature', async () => {
    await using sink = await openSink(DEVELOPMENT)
    expect((await sink.deliver({ body: '{"id":1}' })).status).toBe(422)
    expect((await sink.deliver({ body: '{"id":1}', secret: createSecret(systemRandom) })).status).toBe(401)
  })

  test('does not exist in production, whatever the variable says', async () => {
    const keys = { BASE_URL: 'https://signalbox.example.com', DATABASE_URL: 'postgres://127.0.0.1/none' }
    await using sink = await openSink({ ...keys, APP_ENV: 'production', WEBHOOK_SINK_SECRET: SECRET })
    expect((await sink.deliver()).status).toBe(404)
  })

  test('exists in certification only when its secret is set', async () => {
    await using without = await openSink({ APP_ENV: 'certification' })
    expect((await without.deliver()).status).toBe(404)
    await using with_ = await openSink({ APP_ENV: 'certification', WEBHOOK_SINK_SECRET: SECRET })
    expect((await with_.deliver()).status).toBe(200)
  })

  test('emits no event: a global webhook on the sink would feed itself', async () => {
    await using sink = await openSink(DEVELOPMENT)
    await sink.deliver()
    const events = await sink.t.database.db.selectFrom('event_occurrence').select('event').execute()
    expect(events.filter((event) => event.event.startsWith('webhook-sink'))).toEqual([])
  })
})

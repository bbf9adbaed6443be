import fc from 'fast-check'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { Webhook as SvixWebhook } from 'svix'
import { describe, expect, test } from 'vitest'
import { buildSignatureHeaders, createSecret, signStandard, signTimestamped, verifyTimestamped } from './signature.ts'

const stripe = new Stripe('sk_test_unused')
const random = { bytes: (length: number) => Buffer.alloc(length, 7) }
const SECRET = createSecret(random)
const BODY = '{"id":"a","text":"é\u2028"}'

describe('createSecret', () => {
  test('is whsec_ and the base64 of 32 bytes of the given source', () => {
    expect(SECRET).toBe(`whsec_${Buffer.alloc(32, 7).toString('base64')}`)
    expect(Buffer.from(SECRET.slice(6), 'base64')).toHaveLength(32)
  })
})

describe('published vectors', () => {
  test('Standard Webhooks', () => {
    const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestampSeconds: 1614265330, body: '{"test": 2432232314}' }
    expect(signStandard('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', message)).toBe(
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    )
  })

  test('timestamped HMAC', () => {
    const v1 = '1b3d69df55f1e52f05224ba94a5162abeb17ef52cd7f4948c390f810d6a87e98'
    expect(signTimestamped('secret', 1636936200, 'hello !')).toBe(`t=1636936200,v1=${v1}`)
  })
})

describe('public verifiers accept our signatures', () => {
  const nowSeconds = Math.floor(Date.now() / 1000)
  const headers = buildSignatureHeaders({ secret: SECRET, eventId: 'evt-1', timestampSeconds: nowSeconds, body: BODY })

  test('stripe', () => {
    expect(stripe.webhooks.constructEvent(BODY, headers['x-service-signature']!, SECRET)).toMatchObject({ id: 'a' })
    expect(() => stripe.webhooks.constructEvent(`${BODY} `, headers['x-service-signature']!, SECRET)).toThrow()
    expect(stripe.webhooks.generateTestHeaderString({ payload: BODY, secret: SECRET, timestamp: nowSeconds })).toBe(
      headers['x-service-signature'],
    )
  })

  test('standardwebhooks', () => {
    expect(new StandardWebhook(SECRET).verify(BODY, headers)).toMatchObject({ id: 'a' })
    expect(() => new StandardWebhook(SECRET).verify(`${BODY} `, headers)).toThrow()
  })

  test('svix', () => {
    expect(() => new SvixWebhook(SECRET).verify(BODY, headers)).not.toThrow()
    expect(() => new SvixWebhook(SECRET).verify(`${BODY} `, headers)).toThrow()
  })

  test('any body, as text and as its bytes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.uint8Array({ minLength: 32, maxLength: 32 }), (value, bytes) => {
        const secret = createSecret({ bytes: () => Buffer.from(bytes) })
        const body = JSON.stringify({ value })
        const signed = buildSignatureHeaders({ secret, eventId: 'e', timestampSeconds: nowSeconds, body })
        expect(
          buildSignatureHeaders({ secret, eventId: 'e', timestampSeconds: nowSeconds, body: Buffer.from(body) }),
        ).toEqual(signed)
        stripe.webhooks.constructEvent(body, signed['x-service-signature']!, secret)
        new StandardWebhook(secret).verify(body, signed)
        expect(verifyTimestamped({ secret, header: signed['x-service-signature'], body, nowSeconds }).ok).toBe(true)
      }),
    )
  })
})

describe('verifyTimestamped', () => {
  const header = signTimestamped(SECRET, 1_000_000, BODY)
  const verify = (change: { header?: string | undefined; body?: string; nowSeconds?: number; secret?: string }) =>
    verifyTimestamped({ secret: SECRET, header, body: BODY, nowSeconds: 1_000_000, ...change })

  test.each([-300, -299, 0, 300, 300.9])('accepts a signature %d s old', (age) => {
    expect(verify({ nowSeconds: 1_000_000 + age })).toEqual({ ok: true, timestampSeconds: 1_000_000 })
  })

  test.each([-301, 301, 86_400])('a signature %d s old is stale', (age) => {
    expect(verify({ nowSeconds: 1_000_000 + age })).toEqual({ ok: false, fault: 'stale' })
  })

  test('another body, secret or time does not match', () => {
    expect(verify({ body: `${BODY} ` })).toEqual({ ok: false, fault: 'mismatch' })
    expect(verify({ secret: 'whsec_other' })).toEqual({ ok: false, fault: 'mismatch' })
    expect(verify({ header: header.replace('t=1000000', 't=1000001') })).toEqual({ ok: false, fault: 'mismatch' })
  })

  test('one matching v1 among several is enough, and unknown parts are ignored', () => {
    const [t, v1] = header.split(',')
    const other = `v1=${'0'.repeat(64)}`
    expect(verify({ header: `${t},${other},${v1},v0=abc` }).ok).toBe(true)
    expect(verify({ header: `${t},${other}` })).toEqual({ ok: false, fault: 'mismatch' })
  })

  test.each([
    undefined,
    '',
    't=1000000',
    `v1=${'0'.repeat(64)}`,
    `t=,v1=${'0'.repeat(64)}`,
    `t=-5,v1=${'0'.repeat(64)}`,
    `t=1e6,v1=${'0'.repeat(64)}`,
    `t=01000000,v1=${'0'.repeat(64)}`,
    `t=1000000,t=1000000,v1=${'0'.repeat(64)}`,
    `t=1000000,v1=${'0'.repeat(63)}`,
    `t=1000000,v1=${'z'.repeat(64)}`,
  ])('%j is malformed', (text) => {
    expect(verify({ header: text })).toEqual({ ok: false, fault: 'malformed' })
  })

  test('never throws on any header', () => {
    fc.assert(fc.property(fc.string(), (text) => verify({ header: text }).ok === false))
  })
})

import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { Webhook as SvixWebhook } from 'svix'
import { describe, expect, test } from 'vitest'
import { buildSignedBytes } from '../src/raw-body.ts'
import { parseServiceSignature } from '../src/service-signature.ts'
import { signDelivery } from '../src/testing.ts'
import { checkDelivery, verifyDelivery } from '../src/verify-delivery.ts'
import { hasSignature, verifySignature } from '../src/verify-signature.ts'
import {
  BODY,
  clockAt,
  deliveryHeaders,
  ENVELOPE,
  EVENT_ID,
  OTHER_SECRET,
  SECRET,
  SIGNED_AT,
} from './delivery-fixture.ts'

const stripe = new Stripe('sk_test_unused')

describe('published vectors', () => {
  test('the Standard Webhooks vector verifies, and no other time or body does', async () => {
    const input = {
      secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      body: '{"test": 2432232314}',
      now: () => 1_614_265_330_000,
      headers: {
        'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        'webhook-timestamp': '1614265330',
        'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
      },
    }
    expect(await verifySignature(input)).toEqual({ text: input.body, families: ['standard-webhooks'] })
    const later = { ...input.headers, 'webhook-timestamp': '1614265331' }
    await expect(verifySignature({ ...input, headers: later })).rejects.toMatchObject({ reason: 'signature_mismatch' })
  })

  // Its secret is the word "secret", which is no whsec_ secret, so it is checked below the reading of secrets.
  test('the timestamped HMAC vector verifies, and not with a changed body', async () => {
    const v1 = '1b3d69df55f1e52f05224ba94a5162abeb17ef52cd7f4948c390f810d6a87e98'
    const claim = parseServiceSignature(`t=1636936200,v1=${v1}`)
    const key = new TextEncoder().encode('secret')
    const signed = (body: string) => buildSignedBytes(claim.signedPrefix, new TextEncoder().encode(body))
    expect(await hasSignature(claim, key, signed('hello !'))).toBe(true)
    expect(await hasSignature(claim, key, signed('hello  !'))).toBe(false)
  })
})

describe('signatures of public libraries are accepted:', () => {
  test('stripe', async () => {
    const header = stripe.webhooks.generateTestHeaderString({ payload: BODY, secret: SECRET, timestamp: SIGNED_AT })
    const headers = { 'x-service-signature': header }
    expect(await verifyDelivery({ headers, body: BODY, secret: SECRET, now: clockAt() })).toEqual(ENVELOPE)
  })

  test.each([
    ['standardwebhooks', new StandardWebhook(SECRET)],
    ['svix', new SvixWebhook(SECRET)],
  ])('%s', async (_name, signer) => {
    const headers = {
      'webhook-id': EVENT_ID,
      'webhook-timestamp': String(SIGNED_AT),
      'webhook-signature': signer.sign(EVENT_ID, new Date(SIGNED_AT * 1000), BODY),
    }
    expect(await verifyDelivery({ headers, body: BODY, secret: SECRET, now: clockAt() })).toEqual(ENVELOPE)
  })
})

describe('public libraries accept our signatures:', () => {
  const nowSeconds = () => Math.floor(Date.now() / 1000)

  /** A delivery signed now by node:crypto, because these libraries read the clock of the machine. */
  function signNow(secret: string) {
    const t = nowSeconds()
    const hex = createHmac('sha256', secret).update(`${t}.${BODY}`).digest('hex')
    const key = Buffer.from(secret.slice(6), 'base64')
    const base64 = createHmac('sha256', key).update(`${EVENT_ID}.${t}.${BODY}`).digest('base64')
    return {
      'x-service-signature': `t=${t},v1=${hex}`,
      'webhook-id': EVENT_ID,
      'webhook-timestamp': String(t),
      'webhook-signature': `v1,${base64}`,
    }
  }

  test('stripe, by node:crypto and by signDelivery, and refuses another secret', async () => {
    for (const headers of [signNow(SECRET), await signDelivery({ secret: SECRET, body: BODY, id: EVENT_ID })]) {
      const header = headers['x-service-signature']!
      expect(stripe.webhooks.constructEvent(BODY, header, SECRET)).toEqual(ENVELOPE)
      expect(() => stripe.webhooks.constructEvent(BODY, header, OTHER_SECRET)).toThrow()
    }
  })

  test.each([
    ['standardwebhooks', StandardWebhook],
    ['svix', SvixWebhook],
  ])('%s, by node:crypto and by signDelivery, and refuses another secret', async (_name, Verifier) => {
    for (const headers of [signNow(SECRET), await signDelivery({ secret: SECRET, body: BODY, id: EVENT_ID })]) {
      expect(() => new Verifier(SECRET).verify(BODY, headers)).not.toThrow()
      expect(() => new Verifier(OTHER_SECRET).verify(BODY, headers)).toThrow()
    }
  })
})

describe('agreement', () => {
  test('for any secret, body and id, signDelivery, node:crypto and the verifier agree', async () => {
    const secretText = fc
      .uint8Array({ minLength: 24, maxLength: 64 })
      .map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`)
    await fc.assert(
      fc.asyncProperty(secretText, fc.string({ unit: 'grapheme' }), async (secret, note) => {
        const body = JSON.stringify({ ...ENVELOPE, note })
        const headers = await signDelivery({ secret, body, id: EVENT_ID, now: clockAt() })
        expect(headers).toEqual({ 'content-type': 'application/json', ...deliveryHeaders(body, secret) })
        const check = await checkDelivery({ headers, body, secret, require: 'both', now: clockAt() })
        expect(check).toMatchObject({ ok: true, envelope: { note } })
      }),
    )
  })
})

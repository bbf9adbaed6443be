import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import fc from 'fast-check'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { Webhook as SvixWebhook } from 'svix'
import { describe, expect, test } from 'vitest'
import { MAX_PUBLIC_KEYS } from '../src/public-key.ts'
import { checkKeys } from '../src/receive-delivery.ts'
import { generateKeyPair, signDelivery } from '../src/testing.ts'
import { checkDelivery, verifyDelivery } from '../src/verify-delivery.ts'
import {
  BODY,
  clockAt,
  deliveryHeaders,
  ENVELOPE,
  EVENT_ID,
  OTHER_SECRET,
  SECRET,
  SIGNED_AT,
  signStandardBase64,
} from './delivery-fixture.ts'

const KEY = generateKeyPairSync('ed25519')
const OTHER_KEY = generateKeyPairSync('ed25519')
const serialise = (key: typeof KEY.publicKey) =>
  `whpk_${Buffer.from(key.export({ format: 'jwk' }).x!, 'base64url').toString('base64')}`
const PUBLIC_KEY = serialise(KEY.publicKey)
const OTHER_PUBLIC_KEY = serialise(OTHER_KEY.publicKey)

/** A signature by node:crypto, independently of the code under test. */
const signV1a = (key = KEY.privateKey, body: string | Buffer = BODY, id = EVENT_ID, t: number = SIGNED_AT) =>
  `v1a,${sign(null, Buffer.concat([Buffer.from(`${id}.${t}.`), Buffer.from(body)]), key).toString('base64')}`

/** The headers of a webhook with an asymmetric signature. */
const signed = (v1a = signV1a()) => ({
  ...deliveryHeaders(),
  'webhook-signature': `v1,${signStandardBase64(BODY)} ${v1a}`,
})

const base = { body: BODY, headers: signed() as Record<string, string | undefined>, now: clockAt() }
async function reasonOf(input: object): Promise<string> {
  const check = await checkDelivery({ ...base, ...input } as never)
  return check.ok ? 'ok' : check.reason
}

describe('a delivery with an asymmetric signature', () => {
  test('is accepted by the public key alone, by the secret alone, and by both', async () => {
    const families = async (keys: object) => checkDelivery({ ...base, ...keys } as never)
    expect(await families({ publicKey: PUBLIC_KEY })).toEqual({
      ok: true,
      envelope: ENVELOPE,
      families: ['asymmetric'],
    })
    const symmetric = ['service-signature', 'standard-webhooks']
    expect(await families({ secret: SECRET })).toMatchObject({ ok: true, families: symmetric })
    expect(await families({ secret: SECRET, publicKey: PUBLIC_KEY })).toMatchObject({
      ok: true,
      families: [...symmetric, 'asymmetric'],
    })
    expect(await verifyDelivery({ ...base, publicKey: [OTHER_PUBLIC_KEY, undefined, PUBLIC_KEY] })).toEqual(ENVELOPE)
  })

  test('is accepted by the libraries of others with the secret, as one without', () => {
    const t = Math.floor(Date.now() / 1000)
    const headers = {
      'webhook-id': EVENT_ID,
      'webhook-timestamp': String(t),
      'webhook-signature': `v1,${signStandardBase64(BODY, SECRET, t)} ${signV1a(KEY.privateKey, BODY, EVENT_ID, t)}`,
    }
    for (const Library of [StandardWebhook, SvixWebhook]) {
      expect(() => new Library(SECRET).verify(BODY, headers)).not.toThrow()
      expect(() => new Library(OTHER_SECRET).verify(BODY, headers)).toThrow()
    }
    const header = deliveryHeaders()['x-service-signature']!
    const stripe = new Stripe('sk_test_unused')
    expect(stripe.webhooks.signature!.verifyHeader(BODY, header, SECRET, Number.MAX_SAFE_INTEGER)).toBe(true)
  })

  test.each([
    ['another key', { publicKey: OTHER_PUBLIC_KEY }],
    ['another body', { body: `${BODY} ` }],
    ['another id', { headers: { ...signed(), 'webhook-id': 'evt-2' } }],
    ['another time', { headers: { ...signed(), 'webhook-timestamp': String(SIGNED_AT + 1) } }],
    ['a signature of another key', { headers: signed(signV1a(OTHER_KEY.privateKey)) }],
    ['a signature of zeros', { headers: signed(`v1a,${Buffer.alloc(64).toString('base64')}`) }],
  ])('is refused with %s, whatever its other signatures', async (_what, input) => {
    expect(await reasonOf({ publicKey: PUBLIC_KEY, ...input })).toBe('signature_mismatch')
    if ('headers' in input && !('webhook-id' in input)) return
    expect(await reasonOf({ publicKey: PUBLIC_KEY, secret: SECRET, ...input })).toBe('signature_mismatch')
  })

  test('is refused when the HMAC signatures beside it are wrong and a secret is passed', async () => {
    expect(await reasonOf({ publicKey: PUBLIC_KEY, secret: OTHER_SECRET })).toBe('signature_mismatch')
    expect(await reasonOf({ publicKey: PUBLIC_KEY })).toBe('ok')
  })

  test('is refused 301 s before and after, as every other', async () => {
    for (const [offset, expected] of [
      [300, 'ok'],
      [301, 'timestamp_too_old'],
      [-300, 'ok'],
      [-301, 'timestamp_too_new'],
    ] as const)
      expect(await reasonOf({ publicKey: PUBLIC_KEY, now: clockAt(offset) })).toBe(expected)
  })
})

describe('a delivery without a valid asymmetric signature is refused where a public key is passed', () => {
  const v1 = `v1,${signStandardBase64(BODY)}`
  test.each([
    ['of a plain webhook', v1],
    ['with an empty one', `${v1} v1a,`],
    ['of 32 bytes', `${v1} v1a,${signStandardBase64(BODY)}`],
    ['of 65 bytes', `${v1} v1a,${Buffer.alloc(65).toString('base64')}`],
    ['in base64url', `${v1} v1a,${Buffer.alloc(64, 0xff).toString('base64url')}`],
    ['under a later version', `${v1} v2a,${signV1a().slice(4)}`],
    ['after two spaces', `${v1}  ${signV1a()}`],
    ['that comes nine times', Array.from({ length: 9 }, () => signV1a()).join(' ')],
  ])('%s', async (_what, header) => {
    const headers = { ...signed(), 'webhook-signature': header }
    for (const keys of [{ publicKey: PUBLIC_KEY }, { publicKey: PUBLIC_KEY, secret: SECRET }])
      expect(await reasonOf({ headers, ...keys })).toBe('header_malformed')
  })

  test('or without the headers of Standard Webhooks', async () => {
    const headers = { 'x-service-signature': deliveryHeaders()['x-service-signature'] }
    expect(await reasonOf({ headers, publicKey: PUBLIC_KEY, secret: SECRET })).toBe('header_missing')
  })
})

describe('keys', () => {
  test.each([
    [{ publicKey: undefined }, 'public_key_missing'],
    [{ publicKey: '' }, 'public_key_missing'],
    [{ publicKey: [] }, 'public_key_missing'],
    [{ publicKey: undefined, secret: SECRET }, 'public_key_missing'],
    [{ publicKey: PUBLIC_KEY, secret: undefined }, 'secret_missing'],
    [{}, 'secret_missing'],
    [{ publicKey: SECRET }, 'public_key_malformed'],
    [{ publicKey: `${PUBLIC_KEY}\n` }, 'public_key_malformed'],
    [{ publicKey: PUBLIC_KEY.slice(0, -1) }, 'public_key_malformed'],
    [{ publicKey: `whpk_${Buffer.alloc(31).toString('base64')}` }, 'public_key_malformed'],
    [{ publicKey: `whpk_${'A'.repeat(1_048_576)}` }, 'public_key_malformed'],
    [{ publicKey: 7 }, 'public_key_malformed'],
    [{ publicKey: Array.from({ length: MAX_PUBLIC_KEYS + 1 }, () => PUBLIC_KEY) }, 'public_key_malformed'],
  ])('%j: a key that is passed and is not usable is refused as %s, never left out', async (keys, reason) => {
    expect(await reasonOf(keys)).toBe(reason)
  })

  test('are checked when an adapter is built, as far as they are known then', () => {
    const check = (options: object) => () => checkKeys(options as never)
    expect(check({})).toThrow('secret')
    expect(check({ publicKey: undefined })).toThrow('public key')
    expect(check({ secret: () => SECRET, publicKey: 'whpk_x' })).toThrow('whpk_')
    expect(check({ secret: undefined, publicKey: () => PUBLIC_KEY })).toThrow('secret')
    for (const options of [{ publicKey: PUBLIC_KEY }, { publicKey: () => undefined }, { secret: SECRET }])
      expect(check(options)).not.toThrow()
  })
})

describe('signDelivery', () => {
  test('signs with a generated key, as node:crypto does', async () => {
    const { privateKey, publicKey } = await generateKeyPair()
    const headers = await signDelivery({ secret: SECRET, privateKey, body: BODY, id: EVENT_ID, now: clockAt() })
    const head = Buffer.from('302e020100300506032b657004220420', 'hex')
    const seed = Buffer.from(privateKey.slice(5), 'base64')
    const key = createPrivateKey({ key: Buffer.concat([head, seed]), format: 'der', type: 'pkcs8' })
    expect(serialise(createPublicKey(key))).toBe(publicKey)
    expect(headers['webhook-signature']).toBe(`v1,${signStandardBase64(BODY)} ${signV1a(key)}`)
    expect(await reasonOf({ headers, publicKey, secret: SECRET })).toBe('ok')
    for (const wrong of ['whsk_', PUBLIC_KEY, 'x'])
      await expect(signDelivery({ secret: SECRET, privateKey: wrong, body: BODY, id: EVENT_ID })).rejects.toThrow(
        TypeError,
      )
  })

  test('for any body and id node:crypto, signDelivery and the verifier agree, and one changed byte refuses', async () => {
    const { privateKey, publicKey } = await generateKeyPair()
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'grapheme' }),
        fc.nat(63),
        fc.integer({ min: 1, max: 255 }),
        async (note, place, mask) => {
          const body = JSON.stringify({ ...ENVELOPE, note })
          const headers = await signDelivery({ secret: SECRET, privateKey, body, id: EVENT_ID, now: clockAt() })
          expect(await reasonOf({ headers, body, publicKey })).toBe('ok')
          const [v1, v1a] = headers['webhook-signature']!.split(' ')
          const bytes = Buffer.from(v1a!.slice(4), 'base64')
          bytes[place] = bytes[place]! ^ mask
          const changed = { ...headers, 'webhook-signature': `${v1} v1a,${bytes.toString('base64')}` }
          expect(await reasonOf({ headers: changed, body, publicKey })).toBe('signature_mismatch')
        },
      ),
      { numRuns: 50 },
    )
  })
})

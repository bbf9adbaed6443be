import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { decodeBase64, encodeBase64 } from '../src/base64.ts'
import { checkDelivery } from '../src/verify-delivery.ts'
import {
  BODY,
  clockAt,
  deliveryHeaders,
  EVENT_ID,
  SECRET,
  SIGNED_AT,
  serviceHeaders,
  signServiceHex,
  signStandardBase64,
  standardHeaders,
} from './delivery-fixture.ts'

const V1 = signServiceHex(BODY)
const WRONG = 'ab'.repeat(32)
const B64 = signStandardBase64(BODY)
const WRONG64 = Buffer.from(WRONG, 'hex').toString('base64')

async function reasonOf(headers: unknown, body: string | Uint8Array = BODY): Promise<string> {
  const check = await checkDelivery({ headers: headers as never, body, secret: SECRET, now: clockAt() })
  return check.ok ? 'ok' : check.reason
}

describe('x-service-signature is read strictly', () => {
  test.each([
    [`t=${SIGNED_AT},v1=${V1}`, 'ok'],
    [`v1=${V1},t=${SIGNED_AT}`, 'ok'],
    [`t=${SIGNED_AT},v0=abc,v1=${V1},v2=xyz`, 'ok'],
    [`t=${SIGNED_AT},v1=${WRONG},v1=${V1}`, 'ok'],
    [`t=${SIGNED_AT},${`v1=${WRONG},`.repeat(7)}v1=${V1}`, 'ok'],
    [`t=${SIGNED_AT},${`v1=${WRONG},`.repeat(8)}v1=${V1}`, 'header_malformed'],
    [`t=${SIGNED_AT},v1=${WRONG}`, 'signature_mismatch'],
    ['', 'header_malformed'],
    [' ', 'header_malformed'],
    ['t', 'header_malformed'],
    ['t=', 'header_malformed'],
    [`t=${SIGNED_AT}`, 'header_malformed'],
    [`v1=${V1}`, 'header_malformed'],
    [`t=${SIGNED_AT},v0=${V1}`, 'header_malformed'],
    [`t=${SIGNED_AT},v1=`, 'header_malformed'],
    [`t=${SIGNED_AT},v1=${V1},`, 'header_malformed'],
    [`,t=${SIGNED_AT},v1=${V1}`, 'header_malformed'],
    [`t=${SIGNED_AT},,v1=${V1}`, 'header_malformed'],
    [`t=${SIGNED_AT}, v1=${V1}`, 'header_malformed'],
    [` t=${SIGNED_AT},v1=${V1}`, 'header_malformed'],
    [`t=${SIGNED_AT},v1=${V1}\n`, 'header_malformed'],
    [`t=${SIGNED_AT},t=${SIGNED_AT},v1=${V1}`, 'header_malformed'],
    [`t=1,t=${SIGNED_AT},v1=${V1}`, 'header_malformed'],
    [`t=+${SIGNED_AT},v1=${V1}`, 'header_malformed'],
    [`t=0${SIGNED_AT},v1=${V1}`, 'header_malformed'],
    [`t=${SIGNED_AT}.0,v1=${V1}`, 'header_malformed'],
    ['t=1.79e9,v1=', 'header_malformed'],
    [`t=0x6AB13B80,v1=${V1}`, 'header_malformed'],
    [`t=-${SIGNED_AT},v1=${V1}`, 'header_malformed'],
    [`t=1000000000000,v1=${V1}`, 'header_malformed'],
    [`t=999999999999,v1=${V1}`, 'timestamp_too_new'],
    [`t=0,v1=${V1}`, 'timestamp_too_old'],
    [`t=${SIGNED_AT}000,v1=${V1}`, 'header_malformed'],
    [`T=${SIGNED_AT},V1=${V1}`, 'header_malformed'],
    [`t=${SIGNED_AT},v1=${V1.toUpperCase()}`, 'header_malformed'],
    [`t=${SIGNED_AT},v1=${V1.slice(2)}`, 'header_malformed'],
    [`t=${SIGNED_AT},v1=${V1}00`, 'header_malformed'],
    [`t=${SIGNED_AT},v1=${V1},v1=zz`, 'header_malformed'],
    [`t=${SIGNED_AT},v1=${'g'.repeat(64)}`, 'header_malformed'],
    [`t=${SIGNED_AT},v1=${B64}`, 'header_malformed'],
    [`t=${SIGNED_AT};v1=${V1}`, 'header_malformed'],
  ])('%s: %s', async (header, expected) => {
    expect(await reasonOf({ 'x-service-signature': header })).toBe(expected)
  })
})

describe('the Standard Webhooks headers are read strictly', () => {
  const headers = standardHeaders()
  test.each([
    ['webhook-signature', `v1,${B64}`, 'ok'],
    ['webhook-signature', `v1,${WRONG64} v1,${B64}`, 'ok'],
    ['webhook-signature', `v1a,anything v1,${B64} v2,else`, 'ok'],
    ['webhook-signature', `${`v1,${WRONG64} `.repeat(7)}v1,${B64}`, 'ok'],
    ['webhook-signature', `${`v1,${WRONG64} `.repeat(8)}v1,${B64}`, 'header_malformed'],
    ['webhook-signature', `v1,${WRONG64}`, 'signature_mismatch'],
    ['webhook-signature', '', 'header_malformed'],
    ['webhook-signature', `v1a,${B64}`, 'header_malformed'],
    ['webhook-signature', B64, 'header_malformed'],
    ['webhook-signature', `v1=${B64}`, 'header_malformed'],
    ['webhook-signature', `v1,${B64}, v1,${B64}`, 'header_malformed'],
    ['webhook-signature', `v1,${B64}  v1,${B64}`, 'header_malformed'],
    ['webhook-signature', `v1,${B64} `, 'header_malformed'],
    ['webhook-signature', `v1,${B64.replace('=', '')}`, 'header_malformed'],
    ['webhook-signature', `v1,${V1}`, 'header_malformed'],
    ['webhook-id', '', 'header_malformed'],
    ['webhook-id', `${EVENT_ID}, ${EVENT_ID}`, 'header_malformed'],
    ['webhook-id', 'evt.1', 'header_malformed'],
    ['webhook-id', 'a'.repeat(257), 'header_malformed'],
    ['webhook-id', EVENT_ID.toUpperCase(), 'signature_mismatch'],
    ['webhook-timestamp', `0${SIGNED_AT}`, 'header_malformed'],
    ['webhook-timestamp', `${SIGNED_AT}.5`, 'header_malformed'],
    ['webhook-timestamp', `${SIGNED_AT}abc`, 'header_malformed'],
    ['webhook-timestamp', `${SIGNED_AT + 1}`, 'signature_mismatch'],
  ])('%s: "%s": %s', async (name, value, expected) => {
    expect(await reasonOf({ ...headers, [name]: value })).toBe(expected)
  })

  test.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])(
    'without %s they are incomplete',
    async (name) => {
      expect(await reasonOf({ ...headers, [name]: undefined })).toBe('header_missing')
    },
  )

  test('an id with a dot is refused, so <id>.<t>. is unambiguous', async () => {
    const moved = { ...headers, 'webhook-id': `${EVENT_ID}.${SIGNED_AT}` }
    expect(await reasonOf(moved, BODY)).toBe('header_malformed')
  })
})

describe('a header that was sent twice is refused', () => {
  const value = serviceHeaders()['x-service-signature']!
  test.each([
    ['as an array of two', { 'x-service-signature': [value, value] }],
    ['under two spellings of its name', { 'x-service-signature': value, 'X-Service-Signature': value }],
    [
      'joined by a Headers object',
      new Headers([
        ['x-service-signature', value],
        ['X-Service-Signature', value],
      ]),
    ],
    ['joined by Node', { 'x-service-signature': `${value}, ${value}` }],
    ['as text that is no string', { 'x-service-signature': 5 }],
  ])('%s', async (_name, headers) => {
    expect(await reasonOf(headers)).toBe('header_malformed')
  })

  test.each([
    ['no headers at all', undefined],
    ['an empty object', {}],
    ['an empty array as value', { 'x-service-signature': [] }],
    ['an inherited value', Object.create(serviceHeaders())],
  ])('and %s is a missing header', async (_name, headers) => {
    expect(await reasonOf(headers)).toBe('header_missing')
  })
})

describe('properties', () => {
  test('only the genuine header values verify', async () => {
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.stringMatching(/^(t=[0-9]{0,12}|v1=[0-9a-f]{64}|v1=[a-z]*|,|=| ){0,5}$/),
      fc.constantFrom(...Object.values(deliveryHeaders())),
    )
    const names = Object.keys(deliveryHeaders())
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.constantFrom(...names), text), async (headers) => {
        const reason = await reasonOf(headers)
        const genuine: Record<string, string> = deliveryHeaders()
        const isGenuine = (name: string) => headers[name] === genuine[name]
        const service = names.slice(0, 1)
        const standard = names.slice(1)
        const hasService = headers[service[0]!] !== undefined
        const hasStandard = headers['webhook-signature'] !== undefined
        const isRight =
          (hasService || hasStandard) &&
          (!hasService || service.every(isGenuine)) &&
          (!hasStandard || standard.every(isGenuine))
        expect(reason === 'ok').toBe(isRight)
      }),
      { numRuns: 500 },
    )
  })

  test('changing any one byte of the body refuses it', async () => {
    const bytes = Buffer.from(BODY)
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (index, mask) => {
        const changed = Buffer.from(bytes)
        changed[index] = changed[index]! ^ mask
        expect(await reasonOf(deliveryHeaders(), changed)).toBe('signature_mismatch')
      }),
    )
  })

  test('base64 has one encoding: decoded text encodes to the same text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.stringMatching(/^[A-Za-z0-9+/]{0,12}={0,2}$/), fc.string()), (text) => {
        const bytes = decodeBase64(text)
        expect(bytes === undefined || Buffer.from(bytes).toString('base64') === text).toBe(true)
      }),
    )
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(decodeBase64(encodeBase64(bytes))).toEqual(new Uint8Array(bytes))
      }),
    )
    expect([decodeBase64('QUJD'), decodeBase64('QUI='), decodeBase64('QUJ=')].map((b) => b?.length)).toEqual([
      3,
      2,
      undefined,
    ])
  })
})

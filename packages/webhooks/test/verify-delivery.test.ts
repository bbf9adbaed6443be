import { describe, expect, test } from 'vitest'
import { verifyProvisioning } from '../src/provisioning.ts'
import { signDelivery } from '../src/testing.ts'
import {
  checkDelivery,
  isEventName,
  REFUSAL_REASONS,
  verifyDelivery,
  WebhookVerificationError,
} from '../src/verify-delivery.ts'
import {
  BODY,
  clockAt,
  deliveryHeaders,
  ENVELOPE,
  OTHER_SECRET,
  SECRET,
  SIGNED_AT,
  serviceHeaders,
  signServiceHex,
  signStandardBase64,
  standardHeaders,
} from './delivery-fixture.ts'

const base = { body: BODY, secret: SECRET, now: clockAt() }

async function reasonOf(input: Record<string, unknown>): Promise<string> {
  const check = await checkDelivery({ ...base, ...input } as never)
  return check.ok ? 'ok' : check.reason
}

describe('a genuine delivery', () => {
  test.each([
    ['both families', deliveryHeaders(), ['service-signature', 'standard-webhooks']],
    ['x-service-signature alone', serviceHeaders(), ['service-signature']],
    ['Standard Webhooks headers alone', standardHeaders(), ['standard-webhooks']],
  ])('is accepted by %s and says which family was verified', async (_name, headers, families) => {
    expect(await verifyDelivery({ ...base, headers })).toEqual(ENVELOPE)
    expect(await checkDelivery({ ...base, headers })).toEqual({ ok: true, envelope: ENVELOPE, families })
  })

  test.each([
    ['string', BODY],
    ['Buffer', Buffer.from(BODY)],
    ['Uint8Array', new TextEncoder().encode(BODY)],
    ['a view into a larger buffer', new TextEncoder().encode(`xx${BODY}yy`).subarray(2, 2 + BODY.length)],
    ['ArrayBuffer', new TextEncoder().encode(BODY).buffer],
  ])('is accepted with its body as %s', async (_name, body) => {
    expect(await reasonOf({ headers: deliveryHeaders(), body })).toBe('ok')
  })

  test.each([
    ['a Headers object', new Headers(deliveryHeaders())],
    ['upper-case names', Object.fromEntries(Object.entries(deliveryHeaders()).map(([k, v]) => [k.toUpperCase(), v]))],
    ['one-element arrays', Object.fromEntries(Object.entries(deliveryHeaders()).map(([k, v]) => [k, [v]]))],
    ['a Map', new Map(Object.entries(deliveryHeaders()))],
    ['absent neighbours', { ...deliveryHeaders(), 'x-absent': undefined }],
  ])('is accepted with its headers as %s', async (_name, headers) => {
    expect(await reasonOf({ headers })).toBe('ok')
  })

  test('keeps members and event names this version does not know', async () => {
    const body = JSON.stringify({ ...ENVELOPE, type: 'invoice.pay', added_later: [1] })
    const envelope = await verifyDelivery({ ...base, body, headers: deliveryHeaders(body) })
    expect(envelope).toMatchObject({ type: 'invoice.pay', added_later: [1] })
    expect([isEventName('webhook.test'), isEventName('invoice.pay')]).toEqual([true, false])
  })

  test('signed by signDelivery is accepted, and so is any byte content it signs', async () => {
    const body = JSON.stringify({ ...ENVELOPE, note: 'grün ☂ 😀\r\n' })
    const headers = await signDelivery({ secret: SECRET, body, id: ENVELOPE.id, now: clockAt() })
    expect(headers).toMatchObject(deliveryHeaders(body))
    expect(await reasonOf({ headers, body, require: 'both' })).toBe('ok')
  })
})

describe('time tolerance', () => {
  const families = { service: serviceHeaders(), standard: standardHeaders() }
  test.each([
    ['service', 300, 'ok'],
    ['service', 301, 'timestamp_too_old'],
    ['service', -300, 'ok'],
    ['service', -301, 'timestamp_too_new'],
    ['standard', 300, 'ok'],
    ['standard', 301, 'timestamp_too_old'],
    ['standard', -300, 'ok'],
    ['standard', -301, 'timestamp_too_new'],
  ] as const)('of the %s family at %i s after signing: %s', async (family, offset, expected) => {
    expect(await reasonOf({ headers: families[family], now: clockAt(offset) })).toBe(expected)
  })

  test('counts whole seconds, so 300.999 s is still accepted', async () => {
    expect(await reasonOf({ headers: serviceHeaders(), now: () => clockAt(300)() + 999 })).toBe('ok')
    expect(await reasonOf({ headers: serviceHeaders(), now: clockAt(301) })).toBe('timestamp_too_old')
  })

  test('applies to each family: a fresh one does not excuse a stale one', async () => {
    const t = SIGNED_AT - 1
    const standard = {
      'webhook-timestamp': String(t),
      'webhook-signature': `v1,${signStandardBase64(BODY, SECRET, t)}`,
    }
    const service = { 'x-service-signature': `t=${t},v1=${signServiceHex(BODY, SECRET, t)}` }
    for (const older of [standard, service]) {
      const headers = { ...deliveryHeaders(), ...older }
      expect(await reasonOf({ headers, now: clockAt(299) })).toBe('ok')
      expect(await reasonOf({ headers, now: clockAt(300) })).toBe('timestamp_too_old')
    }
  })

  test('a broken clock refuses', async () => {
    expect(await reasonOf({ headers: serviceHeaders(), now: () => Number.NaN })).toBe('timestamp_too_new')
  })
})

describe('both families together', () => {
  const forgedId = { ...deliveryHeaders(), 'webhook-id': 'forged' }
  const forgedService = { ...deliveryHeaders(), ...serviceHeaders(BODY, OTHER_SECRET) }

  test('one invalid family refuses the delivery, although the other is valid', async () => {
    expect(await reasonOf({ headers: forgedId })).toBe('signature_mismatch')
    expect(await reasonOf({ headers: forgedService })).toBe('signature_mismatch')
  })

  test('with a family in require, only that one is verified', async () => {
    expect(await reasonOf({ headers: forgedId, require: 'service-signature' })).toBe('ok')
    expect(await reasonOf({ headers: forgedId, require: 'standard-webhooks' })).toBe('signature_mismatch')
    expect(await reasonOf({ headers: forgedService, require: 'standard-webhooks' })).toBe('ok')
    expect(await reasonOf({ headers: forgedService, require: 'service-signature' })).toBe('signature_mismatch')
  })

  test('a stripped family is refused where it is required, accepted where it is not', async () => {
    expect(await reasonOf({ headers: serviceHeaders(), require: 'both' })).toBe('header_missing')
    expect(await reasonOf({ headers: standardHeaders(), require: 'both' })).toBe('header_missing')
    expect(await reasonOf({ headers: standardHeaders(), require: 'service-signature' })).toBe('header_missing')
    expect(await reasonOf({ headers: serviceHeaders(), require: 'standard-webhooks' })).toBe('header_missing')
  })

  test('two secrets that are each valid for one family do not verify a delivery', async () => {
    const headers = { ...serviceHeaders(BODY, OTHER_SECRET), ...standardHeaders() }
    expect(await reasonOf({ headers, secret: [SECRET, OTHER_SECRET] })).toBe('signature_mismatch')
  })

  test('a signature of one family is not valid for the other', async () => {
    const hex = serviceHeaders()['x-service-signature']!.split('v1=')[1]!
    const swapped = { ...standardHeaders(), 'webhook-signature': `v1,${Buffer.from(hex, 'hex').toString('base64')}` }
    expect(await reasonOf({ headers: swapped })).toBe('signature_mismatch')
  })
})

describe('secrets', () => {
  test('several are accepted during a rotation, in any order', async () => {
    expect(await reasonOf({ headers: deliveryHeaders(), secret: [OTHER_SECRET, SECRET] })).toBe('ok')
    expect(await reasonOf({ headers: deliveryHeaders(), secret: [SECRET, OTHER_SECRET] })).toBe('ok')
    expect(await reasonOf({ headers: deliveryHeaders(), secret: [undefined, SECRET] })).toBe('ok')
    expect(await reasonOf({ headers: deliveryHeaders(), secret: [OTHER_SECRET] })).toBe('signature_mismatch')
  })

  test.each([
    ['not set', undefined, 'secret_missing'],
    ['empty', '', 'secret_missing'],
    ['an empty list', [], 'secret_missing'],
    ['unset ones only', [undefined, ''], 'secret_missing'],
    ['a malformed one beside a right one', [SECRET, 'whsec_x'], 'secret_malformed'],
    ['without its prefix', SECRET.slice(6), 'secret_malformed'],
    ['the prefix alone', 'whsec_', 'secret_malformed'],
    ['with a line break', `${SECRET}\n`, 'secret_malformed'],
    ['with quotes', `"${SECRET}"`, 'secret_malformed'],
    ['cut short by one character', SECRET.slice(0, -1), 'secret_malformed'],
    ['cut to 16 bytes', 'whsec_MDEyMzQ1Njc4OTAxMjM0NQ==', 'secret_malformed'],
    ['an object', { SECRET }, 'secret_malformed'],
    ['more than eight', Array(9).fill(SECRET), 'secret_malformed'],
  ])('%s: %s refuses before anything else', async (_name, secret, reason) => {
    expect(await reasonOf({ headers: deliveryHeaders(), secret })).toBe(reason)
  })

  test('no message of a refusal repeats a secret, a signature or the body', async () => {
    const inputs = [
      { secret: SECRET.slice(6) },
      { secret: OTHER_SECRET },
      { body: `${BODY} ` },
      { now: clockAt(900) },
      { headers: { 'x-service-signature': `t=1,v1=${'zz'.repeat(32)}` } },
    ]
    for (const input of inputs) {
      const check = await checkDelivery({ ...base, headers: deliveryHeaders(), ...input })
      if (check.ok) throw new Error('should have been refused')
      expect(check.message).not.toMatch(/c2lnbmFs|YW5vdGhl|zzzz|contract|[0-9a-f]{16}/)
      expect(check.message.length).toBeGreaterThan(60)
    }
  })
})

describe('the body', () => {
  test.each([
    ['a parsed object', ENVELOPE],
    ['nothing', undefined],
    ['null', null],
    ['a number', 7],
    ['an array', [ENVELOPE]],
    ['a Request stream', new Response(BODY).body],
  ])('%s is refused as not raw, and the message explains raw bodies', async (_name, body) => {
    const check = await checkDelivery({ ...base, headers: deliveryHeaders(), body } as never)
    expect(check).toMatchObject({ ok: false, reason: 'body_not_raw' })
    expect(!check.ok && check.message).toContain('Take the body before a JSON parser sees it.')
  })

  test.each([
    ['written out again with spaces', JSON.stringify(ENVELOPE, null, 2)],
    ['with a trailing line break', `${BODY}\n`],
    ['with a byte order mark', `\uFEFF${BODY}`],
    ['changed in one character', BODY.replace('"attempt":1', '"attempt":2')],
    ['empty', ''],
  ])('%s does not match', async (_name, body) => {
    expect(await reasonOf({ headers: deliveryHeaders(), body })).toBe('signature_mismatch')
  })

  test.each([
    ['text', 'hello', 'body_not_json'],
    ['cut JSON', BODY.slice(0, -1), 'body_not_json'],
    ['a byte order mark before JSON', `\uFEFF${BODY}`, 'body_not_json'],
    ['bytes that are no UTF-8', Buffer.concat([Buffer.from(BODY), Buffer.from([0xff])]), 'body_not_json'],
    ['no UTF-8 inside a JSON string', Buffer.from(BODY.replace('contract', 'contr\xffct'), 'latin1'), 'body_not_json'],
    ['nothing', '', 'body_not_json'],
    ['a JSON array', '[]', 'envelope_malformed'],
    ['JSON null', 'null', 'envelope_malformed'],
    ['no data', JSON.stringify({ ...ENVELOPE, data: undefined }), 'envelope_malformed'],
    ['attempt 0', JSON.stringify({ ...ENVELOPE, attempt: 0 }), 'envelope_malformed'],
    ['attempt as text', JSON.stringify({ ...ENVELOPE, attempt: '1' }), 'envelope_malformed'],
    ['an empty id', JSON.stringify({ ...ENVELOPE, id: '' }), 'envelope_malformed'],
    [
      'no account',
      JSON.stringify({ ...ENVELOPE, data: { ...ENVELOPE.data, account: undefined } }),
      'envelope_malformed',
    ],
  ])('signed but %s: %s', async (_name, body, reason) => {
    expect(await reasonOf({ headers: deliveryHeaders(body), body })).toBe(reason)
  })

  test('null is accepted for account, id and url (purge and synthetic events)', async () => {
    const body = JSON.stringify({ ...ENVELOPE, data: { ...ENVELOPE.data, account: null, id: null, url: null } })
    expect(await reasonOf({ headers: deliveryHeaders(body), body })).toBe('ok')
  })
})

describe('errors', () => {
  test('verifyDelivery throws the error whose reason checkDelivery returns', async () => {
    const refused = verifyDelivery({ ...base, headers: {} })
    await expect(refused).rejects.toBeInstanceOf(WebhookVerificationError)
    await expect(refused).rejects.toMatchObject({ name: 'WebhookVerificationError', reason: 'header_missing' })
  })

  test('the reasons are a closed list; changing it is a change of the public interface', () => {
    expect([...REFUSAL_REASONS].sort()).toEqual([
      'body_not_json',
      'body_not_raw',
      'body_too_large',
      'crypto_unavailable',
      'envelope_malformed',
      'header_malformed',
      'header_missing',
      'keys_unavailable',
      'public_key_malformed',
      'public_key_missing',
      'secret_malformed',
      'secret_missing',
      'signature_mismatch',
      'timestamp_too_new',
      'timestamp_too_old',
    ])
  })
})

describe('provisioning', () => {
  const user = { document_id: ENVELOPE.data.id, email: 'ada@example.org', name: null, status: 'active' }
  const envelope = { ...ENVELOPE, type: 'user.provisioned', data: { user } }

  test('a delivery to a provisioning target is verified by the same signature', async () => {
    const body = JSON.stringify(envelope)
    expect(await verifyProvisioning({ ...base, body, headers: deliveryHeaders(body) })).toEqual(envelope)
    const forged = verifyProvisioning({ ...base, body, headers: deliveryHeaders(body, OTHER_SECRET) })
    await expect(forged).rejects.toMatchObject({ reason: 'signature_mismatch' })
  })

  test('a genuine body of the other kind is refused with the name of the function that verifies it', async () => {
    const body = JSON.stringify(envelope)
    expect(await checkDelivery({ ...base, body, headers: deliveryHeaders(body) })).toEqual({
      ok: false,
      reason: 'envelope_malformed',
      message:
        'The signature is right, and the body is for a provisioning target. Verify it with verifyProvisioning of @signalbox/webhooks/provisioning.',
    })
    await expect(verifyProvisioning({ ...base, headers: deliveryHeaders() })).rejects.toMatchObject({
      reason: 'envelope_malformed',
      message:
        'The signature is right, and the body is for a webhook. Verify it with verifyDelivery of @signalbox/webhooks.',
    })
  })

  test.each([
    ['neither kind', {}, 'data.account', 'data.user'],
    ['a user that is no object', { user: 'ada' }, 'data.account', 'data.user'],
    ['both kinds', { ...ENVELOPE.data, user: {} }, undefined, 'data.user.document_id'],
  ])('a body of %s is refused by its member', async (_kind, data, ofWebhook, ofUser) => {
    const body = JSON.stringify({ ...envelope, data })
    const input = { ...base, body, headers: deliveryHeaders(body) }
    const checked = await checkDelivery(input)
    expect(checked.ok ? undefined : /member (\S+) is/.exec(checked.message)?.[1]).toBe(ofWebhook)
    await expect(verifyProvisioning(input)).rejects.toMatchObject({ message: expect.stringContaining(`${ofUser} is`) })
  })
})

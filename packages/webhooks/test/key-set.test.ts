import { generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { checkDelivery, createKeySet, WebhookVerificationError } from '../src/verify-delivery.ts'
import { BODY, EVENT_ID, SIGNED_AT } from './delivery-fixture.ts'

const URL_OF_SET = 'https://signalbox.example.com/api/v3/webhook/webhook/1/jwks'
const MINUTE_MS = 60_000

function makeKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'EdDSA', use: 'sig' }
  return { privateKey, jwk }
}

/** A key set behind a switchable answer, a clock, and the verdict on a delivery that a key has signed now. */
function openSet(first: () => Response | Promise<Response>) {
  const clock = { nowMs: SIGNED_AT * 1000 }
  const state = { answer: first, reads: 0, input: undefined as unknown }
  const now = () => clock.nowMs
  const send = async (input: unknown, init: unknown) => {
    state.reads += 1
    state.input = [String(input), init]
    return state.answer()
  }
  const publicKey = createKeySet(URL_OF_SET, { fetch: send as typeof fetch, now })
  const verify = async ({ privateKey }: ReturnType<typeof makeKey>): Promise<string> => {
    const t = Math.floor(now() / 1000)
    const v1a = sign(null, Buffer.from(`${EVENT_ID}.${t}.${BODY}`), privateKey).toString('base64')
    const headers = { 'webhook-id': EVENT_ID, 'webhook-timestamp': String(t), 'webhook-signature': `v1a,${v1a}` }
    const check = await checkDelivery({ headers, body: BODY, publicKey, now })
    return check.ok ? 'ok' : check.reason
  }
  const advance = (ms: number) => {
    clock.nowMs += ms
  }
  return { state, verify, advance }
}

const answer =
  (...keys: unknown[]) =>
  () =>
    Response.json({ keys })
const fail = () => Promise.reject(new TypeError('fetch failed'))

describe('a key set', () => {
  test('is read once for many deliveries, and again after 5 minutes', async () => {
    const key = makeKey()
    const { state, verify, advance } = openSet(answer(key.jwk))
    expect(await Promise.all([verify(key), verify(key), verify(key)])).toEqual(['ok', 'ok', 'ok'])
    expect(state.reads).toBe(1)
    expect(state.input).toMatchObject([URL_OF_SET, { redirect: 'error', signal: expect.any(AbortSignal) }])
    advance(5 * MINUTE_MS - 1)
    await verify(key)
    expect(state.reads).toBe(1)
    advance(1)
    await verify(key)
    expect(state.reads).toBe(2)
  })

  test('is read again for a signature of the key after a rotation, which is then accepted', async () => {
    const [before, after] = [makeKey(), makeKey()]
    const { state, verify, advance } = openSet(answer(before.jwk))
    await verify(before)
    state.answer = answer(after.jwk, before.jwk)
    advance(30_000)
    expect(await verify(after)).toBe('ok')
    expect(await verify(before)).toBe('ok')
    expect(state.reads).toBe(2)
    state.answer = answer(after.jwk)
    advance(5 * MINUTE_MS)
    expect(await verify(before)).toBe('signature_mismatch')
  })

  test('is read at most every 30 s, however many forged signatures arrive', async () => {
    const [key, forged] = [makeKey(), makeKey()]
    const { state, verify, advance } = openSet(answer(key.jwk))
    for (const _ of Array.from({ length: 50 })) expect(await verify(forged)).toBe('signature_mismatch')
    expect(state.reads).toBe(1)
    advance(30_000)
    await Promise.all(Array.from({ length: 50 }, () => verify(forged)))
    expect(state.reads).toBe(2)
    expect(await verify(key)).toBe('ok')
  })

  test('serves for an hour while it cannot be read, then no more', async () => {
    const key = makeKey()
    const { state, verify, advance } = openSet(answer(key.jwk))
    await verify(key)
    state.answer = fail
    advance(60 * MINUTE_MS - 1)
    expect(await verify(key)).toBe('ok')
    advance(1)
    expect(await verify(key)).toBe('keys_unavailable')
    state.answer = answer(key.jwk)
    advance(30_000)
    expect(await verify(key)).toBe('ok')
  })

  test.each([404, 410])('ends at the next read with %d, and comes back 30 s after it does', async (status) => {
    const key = makeKey()
    const { state, verify, advance } = openSet(answer(key.jwk))
    await verify(key)
    state.answer = () => new Response('gone', { status })
    advance(5 * MINUTE_MS)
    expect(await verify(key)).toBe('keys_unavailable')
    state.answer = answer(key.jwk)
    expect(await verify(key)).toBe('keys_unavailable')
    advance(30_000)
    expect(await verify(key)).toBe('ok')
  })

  const endless = () =>
    new Response(new ReadableStream({ pull: (stream) => stream.enqueue(new Uint8Array(1_024).fill(32)) }))
  test.each([
    ['an error', fail],
    ['a 500', () => new Response('{"keys":[]}', { status: 500 })],
    ['text', () => new Response('keys')],
    ['no object', () => Response.json(null)],
    ['no list', () => Response.json({ keys: {} })],
    ['an endless answer', endless],
    ['no keys', answer()],
    [
      'other keys alone',
      answer(null, 7, { kty: 'EC' }, { ...makeKey().jwk, use: 'enc' }, { ...makeKey().jwk, x: 'AA' }),
    ],
  ])('with %s has no key', async (_what, first) => {
    const { verify, state } = openSet(first)
    expect(await verify(makeKey())).toBe('keys_unavailable')
    expect(state.reads).toBe(1)
  })

  test('takes four keys at most', async () => {
    const keys = Array.from({ length: 5 }, makeKey)
    const { verify } = openSet(answer(...keys.map(({ jwk }) => jwk)))
    expect(await Promise.all(keys.map(verify))).toEqual(['ok', 'ok', 'ok', 'ok', 'signature_mismatch'])
  })

  test.each(['http://signalbox.example.com/jwks', 'file:///jwks', 'jwks', ''])('%s is refused as a URL', (url) => {
    expect(() => createKeySet(url)).toThrow(WebhookVerificationError)
  })

  test.each(['https://a.example/jwks', 'http://localhost:3000/jwks', 'http://127.0.0.1/jwks', 'http://[::1]/jwks'])(
    '%s is taken as a URL',
    (url) => {
      expect(() => createKeySet(url)).not.toThrow()
    },
  )
})

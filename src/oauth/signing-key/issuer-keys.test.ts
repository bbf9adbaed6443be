import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { makeKey, startTestIssuer, type TestIssuer } from '../../../test/harness/app/token-issuer.ts'
import { buildManualClock, type ManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildIssuerKeys, type IssuerKeys } from './issuer-keys.ts'

const MINUTE = 60_000
let issuer: TestIssuer
let clock: ManualClock
let keys: IssuerKeys
let warnings: number

beforeEach(async () => {
  await issuer?.[Symbol.asyncDispose]()
  issuer = await startTestIssuer()
  clock = buildManualClock()
  warnings = 0
  const logger = {
    warn: () => {
      warnings += 1
    },
  }
  keys = buildIssuerKeys({ load: issuer.load, clock, logger })
})
afterAll(() => issuer[Symbol.asyncDispose]())

const isFound = async (kid: string) => (await keys.find(kid)) !== undefined

describe('the keys of an issuer', () => {
  test('are read once for many tokens', async () => {
    for (let at = 0; at < 50; at += 1) expect(await isFound('key-1')).toBe(true)
    expect(issuer.reads).toBe(1)
  })

  test('are read once for concurrent first tokens', async () => {
    const found = await Promise.all(Array.from({ length: 200 }, () => isFound('key-1')))
    expect(found.every(Boolean)).toBe(true)
    expect(issuer.reads).toBe(1)
  })

  test('are read again beside the requests after ten minutes', async () => {
    await isFound('key-1')
    clock.advance(11 * MINUTE)
    let open = () => {}
    issuer.gate = new Promise((resolve) => {
      open = resolve
    })
    expect(await isFound('key-1')).toBe(true)
    open()
    await expect.poll(() => issuer.reads).toBe(2)
  })

  test('are used for an hour while the issuer is down, and no longer', async () => {
    await isFound('key-1')
    issuer.fault = 'down'
    clock.advance(59 * MINUTE)
    expect(await isFound('key-1')).toBe(true)
    clock.advance(2 * MINUTE)
    expect(await isFound('key-1')).toBe(false)
    expect(warnings).toBeGreaterThan(0)
  })

  test('are forgotten when the issuer retires them', async () => {
    const next = makeKey('key-2')
    await isFound('key-1')
    issuer.published = [next.jwk]
    clock.advance(2 * MINUTE)
    expect(await isFound('key-2')).toBe(true)
    expect(await isFound('key-1')).toBe(false)
  })
})

describe('an unknown key id', () => {
  test('causes one read a minute, however many tokens name one', async () => {
    await isFound('key-1')
    for (let second = 0; second < 600; second += 1) {
      await Promise.all([isFound(`unknown-${second}`), isFound(`other-${second}`)])
      clock.advance(1_000)
    }
    expect(issuer.reads).toBeLessThanOrEqual(11)
  })

  test('causes one read for a thousand concurrent tokens', async () => {
    await isFound('key-1')
    clock.advance(2 * MINUTE)
    await Promise.all(Array.from({ length: 1_000 }, (_, at) => isFound(`unknown-${at}`)))
    expect(issuer.reads).toBe(2)
  })

  test('finds a key that was published since, when the minute is over', async () => {
    await isFound('key-1')
    issuer.published.push(makeKey('key-2').jwk)
    expect(await isFound('key-2')).toBe(false)
    clock.advance(MINUTE)
    expect(await isFound('key-2')).toBe(true)
  })

  test('does not keep an issuer that is down from being asked more than once a minute', async () => {
    issuer.fault = 'down'
    for (let at = 0; at < 100; at += 1) expect(await isFound('key-1')).toBe(false)
    expect(issuer.reads).toBe(1)
    issuer.fault = undefined
    clock.advance(MINUTE)
    expect(await isFound('key-1')).toBe(true)
  })

  test('is looked for again when the clock steps back', async () => {
    await isFound('unknown')
    clock.set(clock.now() - 3_600_000)
    await isFound('unknown')
    expect(issuer.reads).toBe(2)
  })
})

describe('a key set', () => {
  test.each(['down', 'no json', 'no set'] as const)('that is %s leaves the held keys as they are', async (fault) => {
    await isFound('key-1')
    issuer.fault = fault
    clock.advance(2 * MINUTE)
    expect(await isFound('unknown')).toBe(false)
    expect(await isFound('key-1')).toBe(true)
    expect(warnings).toBe(1)
  })

  test.each([
    ['of another curve', { ...makeKey('odd', 'P-384').jwk, crv: 'P-384' }],
    ['of RSA', { kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'odd', alg: 'RS256' }],
    ['that is symmetric', { kty: 'oct', k: 'c2VjcmV0', kid: 'odd', alg: 'HS256' }],
    ['for encryption', { ...makeKey('odd').jwk, use: 'enc' }],
    ['for another algorithm', { ...makeKey('odd').jwk, alg: 'ES384' }],
    ['that only signs', { ...makeKey('odd').jwk, key_ops: ['sign'] }],
    ['whose operations are no list', { ...makeKey('odd').jwk, key_ops: 'verify' }],
    ['whose operations are null', { ...makeKey('odd').jwk, key_ops: null }],
    ['whose point is not on the curve', { ...makeKey('odd').jwk, x: 'AAAA' }],
    ['whose id is too long', { ...makeKey('odd').jwk, kid: 'o'.repeat(256) }],
    ['without an id', { ...makeKey('odd').jwk, kid: undefined }],
    ['with an empty id', { ...makeKey('odd').jwk, kid: '' }],
  ])('gives no key %s, and all others', async (_name, jwk) => {
    issuer.published = [jwk, issuer.key.jwk]
    expect(await isFound('key-1')).toBe(true)
    expect(await isFound('odd')).toBe(false)
    expect(await isFound('o'.repeat(256))).toBe(false)
    expect(await isFound('')).toBe(false)
  })

  test('gives no key for an id that occurs twice', async () => {
    issuer.published = [issuer.key.jwk, makeKey('key-1').jwk]
    expect(await isFound('key-1')).toBe(false)
  })

  test('gives the key of an id that stands at something else too, which is no key', async () => {
    issuer.published = [{ ...makeKey('key-1').jwk, x: 'AAAA' }, issuer.key.jwk]
    expect(await isFound('key-1')).toBe(true)
  })

  test('gives only public keys, whatever it publishes', async () => {
    const { privateKey } = issuer.key
    issuer.published = [{ ...privateKey.export({ format: 'jwk' }), kid: 'key-1' }]
    expect((await keys.find('key-1'))?.type).toBe('public')
  })

  test('gives at most 32 keys', async () => {
    const { jwk } = makeKey('many')
    issuer.published = Array.from({ length: 40 }, (_, at) => ({ ...jwk, kid: `many-${at}` }))
    expect(await isFound('many-31')).toBe(true)
    expect(await isFound('many-32')).toBe(false)
  })
})

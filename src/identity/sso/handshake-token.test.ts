import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import type { SessionId, UserId } from '../../base/id.ts'
import { signHs256 } from '../session/token/hs256.ts'
import { SESSION_JWT_SECONDS, type SessionKeys, signSessionToken } from '../session/token/session-token.ts'
import { type HandshakeRules, type NewHandshake, signHandshake, verifyHandshake } from './handshake-token.ts'

const NOW = new Date(1_790_000_000_000)
const ORIGIN = 'https://b.example.test'
const USER = '01900000-0000-7000-8000-000000000001' as UserId
const SESSION = '01900000-0000-7000-8000-000000000002' as SessionId

const rules: HandshakeRules = {
  secrets: ['h'.repeat(32), 'i'.repeat(32)],
  issuer: () => 'https://id.example.test',
  baseUrl: () => 'https://id.example.test',
  cookieDomain: undefined,
  origins: [ORIGIN],
  allowLoopback: false,
  acceptSessionJwt: true,
}
const session: SessionKeys = { secrets: ['s'.repeat(32), 't'.repeat(32)], issuer: rules.issuer }

const handshake = (change: Partial<NewHandshake> = {}): NewHandshake => ({
  userId: USER,
  sessionId: SESSION,
  audience: ORIGIN,
  next: null,
  issuedAt: NOW,
  expiresAt: new Date(NOW.getTime() + 60_000),
  nonce: 'n'.repeat(32),
  ...change,
})

const verify = (token: string, keys = { rules, session }) => verifyHandshake(keys, token, { appOrigin: null, now: NOW })
const sessionJwt = signSessionToken(session, {
  userId: USER,
  sessionId: SESSION,
  accountId: null,
  tokenId: 'one',
  issuedAt: NOW,
  expiresAt: new Date(NOW.getTime() + SESSION_JWT_SECONDS * 1000),
  amr: ['pwd'],
  acr: null,
  authTime: NOW,
})

/** Counts how often a secret is used as the key of a MAC: `verifyHs256` reads it once for each. */
function countMacs(token: string, accept = true): number {
  let macs = 0
  const counted = (secrets: readonly string[]) =>
    new Proxy(secrets, {
      get: (target, name) => {
        if (typeof name === 'string' && /^\d+$/.test(name)) macs += 1
        return Reflect.get(target, name)
      },
    })
  verify(token, {
    rules: { ...rules, secrets: counted(rules.secrets), acceptSessionJwt: accept },
    session: { ...session, secrets: counted(session.secrets) },
  })
  return macs
}

describe('verifying a handshake token', () => {
  test('takes a nonce of 22 to 255 characters', () => {
    const isTaken = (length: number) => verify(signHandshake(rules, handshake({ nonce: 'n'.repeat(length) }))).ok
    expect([21, 22, 255, 256].map(isTaken)).toEqual([false, true, true, false])
  })

  test('computes the same number of MACs for every text', () => {
    const token = signHandshake(rules, handshake())
    const signed = (claims: object, type: string, secret = rules.secrets[0]!) =>
      signHs256(claims as Record<string, unknown>, { secret, type })
    const texts = [
      token,
      '',
      'x',
      '...',
      'x'.repeat(9000),
      token.slice(0, -1),
      `${token}x`,
      `${token}.e30`,
      token.replace(/.$/, '='),
      signed({}, 'sso+jwt'),
      signed({ jwt: sessionJwt }, 'sso+jwt'),
      signed({}, 'at+jwt'),
      signed({}, 'sso+jwt', 'x'.repeat(32)),
      signHandshake(rules, handshake({ next: '//evil.test' })),
      signHandshake(rules, handshake({ audience: 'https://evil.test' })),
      signHandshake(rules, handshake({ issuedAt: new Date(0), expiresAt: new Date(1000) })),
      sessionJwt,
    ]
    for (const accept of [true, false])
      expect(texts.map((text) => countMacs(text, accept))).toEqual(Array(texts.length).fill(6))
  })

  test('takes the session JWT of another issuer only where the rules do, and a carrier in its own class alone', () => {
    const [secret] = rules.secrets as [string]
    const { jwt: carrier, ...claims } = JSON.parse(
      Buffer.from(signHandshake(rules, handshake()).split('.')[1] ?? '', 'base64url').toString(),
    ) as Record<string, unknown>
    const read = (jwt: unknown, type: string, accept = true) => {
      const token = signHs256({ ...claims, jwt }, { secret, type })
      const result = verify(token, { rules: { ...rules, acceptSessionJwt: accept }, session })
      return result.ok || result.reason
    }
    expect([read(sessionJwt, 'JWT'), read(sessionJwt, 'JWT', false)]).toEqual([true, 'type'])
    expect([read(carrier, 'sso+jwt'), read(carrier, 'sso+jwt', false)]).toEqual([true, true])
    expect([read(carrier, 'JWT'), read(sessionJwt, 'sso+jwt')]).toEqual(['inner_signature', 'inner_signature'])
    expect([read(7, 'JWT'), read('', 'sso+jwt')]).toEqual(['inner_missing', 'inner_form'])
  })

  test('takes a path that stays at the target, and an exchange from the target alone', () => {
    const read = (next: string | null, appOrigin: string | null = null) => {
      const token = signHandshake(rules, handshake({ next }))
      const result = verifyHandshake({ rules, session }, token, { appOrigin, now: NOW })
      return result.ok ? result.handshake.next : result.reason
    }
    expect([read('/orders'), read(null), read('//evil.test'), read('orders')]).toEqual([
      '/orders',
      null,
      'next',
      'next',
    ])
    expect([read('/', ORIGIN), read('/', 'https://c.example.test')]).toEqual(['/', 'origin'])
  })

  test('accepts under every secret what each of them signed', () => {
    for (const secret of rules.secrets)
      expect(verify(signHandshake({ ...rules, secrets: [secret] }, handshake())).ok).toBe(true)
  })
})

describe('properties', () => {
  test('a token is read back as it was made', () => {
    fc.assert(
      fc.property(
        fc.uuid(),
        fc.uuid(),
        fc.stringMatching(/^[A-Za-z0-9_-]{22,64}$/),
        fc.option(fc.stringMatching(/^\/[a-z0-9]{1,40}$/)),
        fc.integer({ min: 1, max: 60 }),
        (userId, sessionId, nonce, next, seconds) => {
          const expiresAt = new Date(NOW.getTime() + seconds * 1000)
          const made = { userId: userId as UserId, sessionId: sessionId as SessionId, nonce, next, expiresAt }
          expect(verify(signHandshake(rules, handshake(made)))).toEqual({
            ok: true,
            handshake: { ...made, audience: ORIGIN },
          })
        },
      ),
      { numRuns: 300 },
    )
  })

  test('a token with one character changed, removed or added is refused', () => {
    const token = signHandshake(rules, handshake())
    const character = fc.constantFrom(...'ABCxyz019-_.=+/ \n\u0000é')
    fc.assert(
      fc.property(fc.nat(token.length - 1), character, fc.constantFrom(0, 1), (at, other, removed) => {
        const changed = `${token.slice(0, at)}${other}${token.slice(at + removed)}`
        fc.pre(changed !== token)
        expect(verify(changed).ok).toBe(false)
        expect(verify(token.slice(0, at) + token.slice(at + 1)).ok).toBe(false)
      }),
      { numRuns: 1500 },
    )
  })

  test('no text makes the verifier throw, and none without a secret is accepted', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: anyCharacter, maxLength: 400 }),
        fc.string({ unit: anyCharacter }),
        (part, other) => {
          for (const text of [part, `${part}.${other}.${part}`, ['e30', other, part].join('.')])
            expect(verify(text).ok).toBe(false)
        },
      ),
      { numRuns: 800 },
    )
  })

  test('claims of any kind under the right secret are refused without a throw unless they are a handshake', () => {
    const claim = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom(ORIGIN, rules.issuer(), sessionJwt, 1_790_000_000, 1_790_000_060, 'n'.repeat(32), '/'),
    )
    const names = ['iss', 'aud', 'jwt', 'nonce', 'next', 'iat', 'exp', 'nbf', 'sub', 'sid', '__proto__', 'constructor']
    const claims = fc.dictionary(fc.constantFrom(...names), claim)
    fc.assert(
      fc.property(claims, fc.constantFrom('sso+jwt', 'sso-inner+jwt', 'JWT', ''), (given, type) => {
        const [secret] = rules.secrets as [string]
        const result = verify(signHs256(given, { secret, type }))
        // A generated handshake would need a class and a carrier; the session JWT alone is accepted without a class only.
        expect(result.ok).toBe(false)
      }),
      { numRuns: 1500 },
    )
  })

  test('every set of claims with one of them left out or of another kind is refused', () => {
    const whole = { iss: rules.issuer(), aud: ORIGIN, nonce: 'n'.repeat(32), iat: 1_790_000_000, exp: 1_790_000_060 }
    const carrier = JSON.parse(
      Buffer.from(signHandshake(rules, handshake()).split('.')[1] ?? '', 'base64url').toString(),
    ).jwt as string
    const claims: Record<string, unknown> = { ...whole, jwt: carrier }
    const [secret] = rules.secrets as [string]
    expect(verify(signHs256(claims, { secret, type: 'sso+jwt' })).ok).toBe(true)
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(claims)), fc.jsonValue({ maxDepth: 2 }), (name, value) => {
        fc.pre(typeof value !== typeof claims[name] || value === '')
        expect(verify(signHs256({ ...claims, [name]: value }, { secret, type: 'sso+jwt' })).ok).toBe(false)
        const { [name]: _left, ...rest } = claims
        expect(verify(signHs256(rest, { secret, type: 'sso+jwt' })).ok).toBe(false)
      }),
      { numRuns: 600 },
    )
  })
})

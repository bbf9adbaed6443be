import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../../test/harness/run/any-text.ts'
import { TOKEN_LENGTH_LIMIT } from './compact-jws.ts'
import { type Hs256Policy, type Hs256Refusal, signHs256, verifyHs256 } from './hs256.ts'

const SECRET = 'a'.repeat(32)
const OLDER_SECRET = 'b'.repeat(32)
const NOW_SECONDS = 1_790_000_000

const CLAIMS = { iss: 'https://id.test', aud: 'app', iat: NOW_SECONDS, exp: NOW_SECONDS + 60, sub: 'someone' }

function policy(change: Partial<Hs256Policy> = {}): Hs256Policy {
  return {
    secrets: [SECRET],
    types: ['jwt', undefined],
    isAudience: (aud) => aud === 'app',
    isIssuer: (iss) => iss === 'https://id.test',
    now: new Date(NOW_SECONDS * 1000),
    leewaySeconds: 5,
    ...change,
  }
}

/** Signs raw text, so that tests can build tokens that no encoder produces. */
function signRaw(header: string | Buffer, payload: string | Buffer, secret = SECRET): string {
  const signed = `${Buffer.from(header as string).toString('base64url')}.${Buffer.from(payload as string).toString('base64url')}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

const HEADER = '{"alg":"HS256","typ":"JWT"}'
const signPayload = (claims: unknown) => signRaw(HEADER, JSON.stringify(claims))
const reasonOf = (token: string, change: Partial<Hs256Policy> = {}): Hs256Refusal | 'ok' => {
  const result = verifyHs256(token, policy(change))
  return result.ok ? 'ok' : result.reason
}

describe('a valid token', () => {
  test('is made by signHs256 and returns its claims', () => {
    const result = verifyHs256(signHs256(CLAIMS, { secret: SECRET, type: 'JWT' }), policy())
    expect(result).toEqual({ ok: true, type: 'jwt', claims: CLAIMS })
  })

  test('has an interoperable signature: the example of jwt.io verifies under its secret only', () => {
    const example =
      'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c'
    expect(reasonOf(example, { secrets: ['your-256-bit-secret'] })).toBe('issuer')
    expect(reasonOf(example)).toBe('signature')
  })

  test('is signed by one of the secrets', () => {
    const older = signHs256(CLAIMS, { secret: OLDER_SECRET, type: 'JWT' })
    expect(reasonOf(older, { secrets: [SECRET, OLDER_SECRET] })).toBe('ok')
    expect(reasonOf(older)).toBe('signature')
    expect(reasonOf(older, { secrets: [] })).toBe('signature')
  })

  test('may have spaces in its JSON, no typ, and a kid, which is ignored', () => {
    const header = '{ "alg" : "HS256", "kid": "../../etc/passwd" }'
    expect(reasonOf(signRaw(header, JSON.stringify(CLAIMS, null, 2)))).toBe('ok')
  })
})

describe('header and claims, checked after the signature', () => {
  test.each<[string, string, Hs256Refusal]>([
    ['no algorithm', '{"typ":"JWT"}', 'algorithm'],
    ['none', '{"alg":"none","typ":"JWT"}', 'algorithm'],
    ['another algorithm', '{"alg":"HS512","typ":"JWT"}', 'algorithm'],
    ['another case', '{"alg":"hs256","typ":"JWT"}', 'algorithm'],
    ['a critical header', '{"alg":"HS256","crit":["exp"]}', 'critical_header'],
    ['a critical header of null', '{"alg":"HS256","crit":null}', 'critical_header'],
    ['a handshake', '{"alg":"HS256","typ":"sso+jwt"}', 'type'],
    ['a carrier', '{"alg":"HS256","typ":"sso-inner+jwt"}', 'type'],
    ['an access token', '{"alg":"HS256","typ":"at+jwt"}', 'type'],
    ['a class spelled as a media type', '{"alg":"HS256","typ":"application/sso+jwt"}', 'type'],
    ['a class that is no text', '{"alg":"HS256","typ":["JWT"]}', 'type'],
    ['a null class', '{"alg":"HS256","typ":null}', 'type'],
    ['a header that is a list', '["HS256"]', 'json'],
    ['a header that is no JSON', '{alg:HS256}', 'json'],
    ['two algorithms', '{"alg":"none","alg":"HS256"}', 'duplicate_key'],
    ['two algorithms, one escaped', '{"alg":"none","\\u0061lg":"HS256"}', 'duplicate_key'],
  ])('a header with %s is refused', (_name, header, reason) => {
    expect(reasonOf(signRaw(header, JSON.stringify(CLAIMS)))).toBe(reason)
  })

  test('a class is accepted only if the policy lists it', () => {
    const handshake = signHs256(CLAIMS, { secret: SECRET, type: 'sso+jwt' })
    expect(reasonOf(handshake)).toBe('type')
    expect(reasonOf(handshake, { types: ['sso+jwt'] })).toBe('ok')
    expect(reasonOf(signHs256(CLAIMS, { secret: SECRET, type: 'JWT' }), { types: ['sso+jwt'] })).toBe('type')
  })

  test.each<[string, unknown, Hs256Refusal]>([
    ['an unknown issuer', { ...CLAIMS, iss: 'https://evil.test' }, 'issuer'],
    ['no issuer', { ...CLAIMS, iss: undefined }, 'issuer'],
    ['another audience', { ...CLAIMS, aud: 'other' }, 'audience'],
    ['a list as audience', { ...CLAIMS, aud: ['app'] }, 'audience'],
    ['no audience', { ...CLAIMS, aud: undefined }, 'audience'],
    ['no end', { ...CLAIMS, exp: undefined }, 'times'],
    ['a fraction', { ...CLAIMS, exp: NOW_SECONDS + 0.5 }, 'times'],
    ['an end as text', { ...CLAIMS, exp: String(NOW_SECONDS + 60) }, 'times'],
    ['an end beyond every integer', { ...CLAIMS, exp: 1e300 }, 'times'],
    ['an end after the year 9999', { ...CLAIMS, exp: 253_402_300_800 }, 'times'],
    ['no beginning', { ...CLAIMS, iat: undefined }, 'times'],
    ['a negative beginning', { ...CLAIMS, iat: -1 }, 'times'],
    ['an end before its beginning', { ...CLAIMS, iat: NOW_SECONDS + 61 }, 'times'],
    ['a not-before as text', { ...CLAIMS, nbf: 'now' }, 'times'],
    ['a not-before to come', { ...CLAIMS, nbf: NOW_SECONDS + 6 }, 'not_yet_valid'],
  ])('claims with %s are refused', (_name, claims, reason) => {
    expect(reasonOf(signPayload(claims))).toBe(reason)
  })

  test('an end in the last second of the year 9999 is accepted', () => {
    expect(reasonOf(signPayload({ ...CLAIMS, exp: 253_402_300_799 }))).toBe('ok')
  })

  test('members of the prototype are not claims', () => {
    const claims = `{"__proto__":${JSON.stringify(CLAIMS)}}`
    expect(reasonOf(signRaw(HEADER, claims))).toBe('issuer')
  })

  test('a duplicate name is refused at any depth; the same name in two objects is not', () => {
    const members = JSON.stringify(CLAIMS).slice(1, -1)
    expect(reasonOf(signRaw(HEADER, `{${members},"sub":"other"}`))).toBe('duplicate_key')
    expect(reasonOf(signRaw(HEADER, `{${members},"a":[{"b":1,"b":2}]}`))).toBe('duplicate_key')
    expect(reasonOf(signRaw(HEADER, `{${members},"a":[{"b":1},{"b":",\\"b\\":"}],"b":"b"}`))).toBe('ok')
  })

  test('sixteen levels are accepted, seventeen are refused', () => {
    const nested = (levels: number) => signRaw(HEADER, `{"deep":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`)
    expect(reasonOf(nested(16))).toBe('issuer')
    expect(reasonOf(nested(17))).toBe('duplicate_key')
  })

  test('invalid UTF-8 and a byte order mark are refused', () => {
    expect(reasonOf(signRaw(HEADER, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])))).toBe('json')
    expect(reasonOf(signRaw(HEADER, `\ufeff${JSON.stringify(CLAIMS)}`))).toBe('json')
  })
})

describe('times, with five seconds of leeway', () => {
  const at = (seconds: number) => ({ now: new Date(seconds * 1000) })
  const token = signPayload(CLAIMS)

  test('a token is valid until five seconds after exp', () => {
    expect(reasonOf(token, { now: new Date((CLAIMS.exp + 5) * 1000 - 1) })).toBe('ok')
    expect(reasonOf(token, at(CLAIMS.exp + 5))).toBe('expired')
  })

  test('a token is valid from five seconds before iat', () => {
    expect(reasonOf(token, at(CLAIMS.iat - 5))).toBe('ok')
    expect(reasonOf(token, { now: new Date((CLAIMS.iat - 5) * 1000 - 1) })).toBe('not_yet_valid')
  })

  test('a lifetime over the limit is refused', () => {
    expect(reasonOf(token, { maxLifetimeSeconds: 60 })).toBe('ok')
    expect(reasonOf(signPayload({ ...CLAIMS, exp: CLAIMS.iat + 61 }), { maxLifetimeSeconds: 60 })).toBe('lifetime')
  })
})

describe('the form', () => {
  const token = signHs256(CLAIMS, { secret: SECRET, type: 'JWT' })

  test.each<[string, string]>([
    ['nothing', ''],
    ['two parts', token.slice(0, token.lastIndexOf('.'))],
    ['four parts', `${token}.e30`],
    ['an empty signature', token.slice(0, token.lastIndexOf('.') + 1)],
    ['padding', `${token}=`],
    ['a line end', `${token}\n`],
    ['the other base64 alphabet', `${token.slice(0, token.lastIndexOf('.'))}.${'+'.repeat(43)}`],
  ])('%s is refused', (_name, text) => {
    expect(reasonOf(text)).toBe('form')
  })

  test('a signature has one encoding: unused bits of its last character must be zero', () => {
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const last = letters.indexOf(token.at(-1)!)
    const sameBytes = `${token.slice(0, -1)}${letters[last ^ 1]}`
    expect(Buffer.from(sameBytes.split('.')[2]!, 'base64url')).toEqual(Buffer.from(token.split('.')[2]!, 'base64url'))
    expect(reasonOf(sameBytes)).toBe('form')
  })

  test('a token at the length limit is accepted, one character more is refused', () => {
    const sized = (length: number) => {
      const bare = signPayload({ ...CLAIMS, fill: '' }).length
      for (let fill = Math.floor(((length - bare) * 3) / 4) - 4; ; fill += 1) {
        const candidate = signPayload({ ...CLAIMS, fill: 'x'.repeat(fill) })
        if (candidate.length >= length) return candidate
      }
    }
    expect(reasonOf(sized(TOKEN_LENGTH_LIMIT - 2))).toBe('ok')
    expect(reasonOf(sized(TOKEN_LENGTH_LIMIT + 1))).toBe('size')
  })
})

describe('properties', () => {
  const token = signHs256(CLAIMS, { secret: SECRET, type: 'JWT' })
  const character = fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n\u0000é')

  test('a token with one character changed, removed or added is refused', () => {
    fc.assert(
      fc.property(fc.nat(token.length - 1), character, fc.constantFrom(0, 1), (at, other, removed) => {
        const changed = `${token.slice(0, at)}${other}${token.slice(at + removed)}`
        fc.pre(changed !== token)
        expect(verifyHs256(changed, policy()).ok).toBe(false)
        expect(verifyHs256(token.slice(0, at) + token.slice(at + 1), policy()).ok).toBe(false)
      }),
      { numRuns: 2000 },
    )
  })

  test('the verifier throws for no text, signed or not', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: anyCharacter, maxLength: 300 }),
        fc.string({ unit: anyCharacter }),
        (part, other) => {
          expect(verifyHs256(part, policy()).ok).toBe(false)
          expect(verifyHs256(`${part}.${other}.${part}`, policy()).ok).toBe(false)
          expect(verifyHs256(signRaw(part, other), policy()).ok).toBe(false)
          expect(verifyHs256(signRaw(HEADER, other), policy()).ok).toBe(false)
        },
      ),
      { numRuns: 500 },
    )
  })

  test('every claim set within the policy round-trips', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ maxLength: 20 }), fc.jsonValue({ maxDepth: 4 }), { maxKeys: 8 }),
        (extra) => {
          const { nbf: _nbf, ...rest } = extra
          const claims = JSON.parse(JSON.stringify({ ...rest, ...CLAIMS })) as Record<string, unknown>
          expect(verifyHs256(signHs256(claims, { secret: SECRET, type: 'JWT' }), policy())).toMatchObject({
            ok: true,
            claims,
          })
        },
      ),
      { numRuns: 300 },
    )
  })
})

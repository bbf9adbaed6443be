import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import type { TestAnswer } from '../../test/harness/app/app.ts'
import { BASE_URL, createExchangeApp, EXCHANGE, GRANT_TYPE, TOKEN_TYPE } from '../../test/harness/app/exchange-app.ts'
import { headOf, makeKey, signParts } from '../../test/harness/app/token-issuer.ts'
import { countTraffic } from '../../test/harness/plan/round-trips.ts'
import { openForFile } from '../../test/harness/run/open-for-file.ts'

let sessionJwt: string
const strange = makeKey('key-1')

const fixture = await openForFile(createExchangeApp({ env: { RATE_LIMIT_PER_MINUTE: '10000000' } }))
const userId = (await fixture.signUp()).userId
beforeEach(async () => {
  // Equal refusals of a minute are one audit entry: each test has a minute of its own.
  fixture.app.clock.advance(60_000)
  sessionJwt = (await fixture.app.signInMember()).token
})

const claims = (change: object = {}) => fixture.claims(userId, change)
const make = (change: object = {}) => fixture.mint(userId, change)
const withHead = (header: object) => fixture.mint(userId, {}, { header })
const at = (seconds: number) => fixture.seconds() + seconds
const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const alter = (token: string, part: 0 | 1 | 2, change: (text: string) => string) =>
  token
    .split('.')
    .map((text, index) => (index === part ? change(text) : text))
    .join('.')

/** Signs under ES256 whatever the header says. */
function signEs256(header: object | string, body: object | string, key = fixture.issuer.key): string {
  const text = `${encode(header)}.${encode(body)}`
  const bytes = sign('sha256', Buffer.from(text), { key: key.privateKey, dsaEncoding: 'ieee-p1363' })
  return `${text}.${bytes.toString('base64url')}`
}

function signRs256(): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const text = `${encode({ alg: 'RS256', typ: 'at+jwt', kid: 'key-1' })}.${encode(claims())}`
  return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`
}

/** The signature in the form of X.509 (DER) instead of that of JWS. */
function signDer(): string {
  const text = `${encode(headOf(fixture.issuer.key))}.${encode(claims())}`
  return `${text}.${sign('sha256', Buffer.from(text), fixture.issuer.key.privateKey).toString('base64url')}`
}

/** Uses the public key as the secret of an HMAC, in the forms that a careless library takes. */
function signHmac(secret: 'jwk' | 'pem' | 'x'): string {
  const { jwk, privateKey } = fixture.issuer.key
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const text = `${encode({ alg: 'HS256', typ: 'at+jwt', kid: 'key-1' })}.${encode(claims())}`
  const key = { jwk: JSON.stringify(jwk), pem, x: Buffer.from(String(jwk.x), 'base64url') }[secret]
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
}

const ATTACKS: readonly (readonly [name: string, reason: string, make: () => string])[] = [
  // The form.
  ['the empty text', 'form', () => ''],
  ['a word', 'form', () => 'token'],
  ['two parts', 'form', () => make().split('.').slice(0, 2).join('.')],
  ['four parts', 'form', () => `${make()}.${make().split('.')[2]}`],
  ['an encrypted token of five parts', 'form', () => 'e30.e30.e30.e30.e30'],
  ['padding', 'form', () => `${make()}==`],
  ['the letters of plain base64', 'form', () => alter(make(), 2, (text) => `+/${text.slice(2)}`)],
  ['a line end after the token', 'form', () => `${make()}\n`],
  ['spaces around the token', 'form', () => ` ${make()} `],
  ['the word Bearer before the token', 'form', () => `Bearer ${make()}`],
  ['a megabyte in the size of a token and more', 'size', () => `${make()}${'A'.repeat(9_000)}`],
  ['a list as claims', 'json', () => signEs256(headOf(fixture.issuer.key), '[]')],
  ['a text as header', 'json', () => signEs256('"ES256"', claims())],
  ['claims that are no JSON', 'json', () => signEs256(headOf(fixture.issuer.key), '{"iss":')],
  [
    'claims in another encoding',
    'json',
    () => alter(make(), 1, () => Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')),
  ],
  [
    'a member twice in the claims',
    'duplicate_key',
    () => signEs256(headOf(fixture.issuer.key), JSON.stringify(claims()).replace('{', `{"sub":"${userId}",`)),
  ],
  [
    'a member twice in the header',
    'duplicate_key',
    () => signEs256('{"alg":"none","alg":"ES256","typ":"at+jwt","kid":"key-1"}', claims()),
  ],
  // The algorithm.
  [
    'no signature (alg none)',
    'form',
    () => signParts({ ...headOf(fixture.issuer.key), alg: 'none' }, claims(), fixture.issuer.key),
  ],
  [
    'alg none with a genuine signature',
    'algorithm',
    () => signEs256({ ...headOf(fixture.issuer.key), alg: 'none' }, claims()),
  ],
  [
    'alg NoNe with a genuine signature',
    'algorithm',
    () => signEs256({ ...headOf(fixture.issuer.key), alg: 'NoNe' }, claims()),
  ],
  ['HS256 under the public key as JWK', 'form', () => signHmac('jwk')],
  ['HS256 under the key as PEM', 'form', () => signHmac('pem')],
  [
    'HS512 of the length of an ES256 signature',
    'algorithm',
    () => signParts({ ...headOf(fixture.issuer.key), alg: 'HS512' }, claims(), fixture.issuer.key),
  ],
  ['RS256 under a strange key', 'form', () => signRs256()],
  ['ES384 in the header', 'algorithm', () => signEs256({ ...headOf(fixture.issuer.key), alg: 'ES384' }, claims())],
  ['es256 in lower case', 'algorithm', () => signEs256({ ...headOf(fixture.issuer.key), alg: 'es256' }, claims())],
  ['a list of algorithms', 'algorithm', () => signEs256({ ...headOf(fixture.issuer.key), alg: ['ES256'] }, claims())],
  ['no algorithm', 'algorithm', () => signEs256({ typ: 'at+jwt', kid: 'key-1' }, claims())],
  ['a signature in DER', 'form', () => signDer()],
  ['a signature of zeros', 'signature', () => alter(make(), 2, () => Buffer.alloc(64).toString('base64url'))],
  [
    'the signature of another token',
    'signature',
    () => alter(make(), 2, () => make({ jti: 'other' }).split('.')[2] ?? ''),
  ],
  ['changed claims', 'signature', () => alter(make(), 1, () => encode(claims({ scope: 'openid contract:write' })))],
  // The header.
  ['crit', 'critical_header', () => withHead({ crit: ['exp'], exp: 1 })],
  ['crit with b64', 'critical_header', () => withHead({ crit: ['b64'], b64: false })],
  [
    'a key of its own (jwk)',
    'key_in_header',
    () => fixture.mint(userId, {}, { header: { jwk: strange.jwk }, key: strange }),
  ],
  [
    'an address of keys (jku)',
    'key_in_header',
    () => fixture.mint(userId, {}, { header: { jku: 'http://127.0.0.1:1/jwks' }, key: strange }),
  ],
  ['a certificate (x5c)', 'key_in_header', () => withHead({ x5c: ['MIIB'] })],
  ['an address of certificates (x5u)', 'key_in_header', () => withHead({ x5u: 'http://127.0.0.1:1/' })],
  ['no key id', 'key_id', () => withHead({ kid: undefined })],
  ['an empty key id', 'key_id', () => withHead({ kid: '' })],
  ['a number as key id', 'key_id', () => withHead({ kid: 1 })],
  ['a key id of 256 letters', 'key_id', () => withHead({ kid: 'k'.repeat(256) })],
  ['a path as key id', 'key_unknown', () => withHead({ kid: '../../../../dev/null' })],
  ['SQL as key id', 'key_unknown', () => withHead({ kid: "key-1' union select 'x" })],
  ['an address as key id', 'key_unknown', () => withHead({ kid: 'http://127.0.0.1:1/key' })],
  ['__proto__ as key id', 'key_unknown', () => withHead({ kid: '__proto__' })],
  ['a strange key under a known id', 'signature', () => fixture.mint(userId, {}, { key: strange })],
  // The class.
  [
    'an ID token',
    'type',
    () => fixture.mint(userId, { aud: 'client-of-a-test', nonce: 'n' }, { header: { typ: 'JWT' } }),
  ],
  ['an ID token with the class of an access token', 'audience', () => make({ aud: 'client-of-a-test' })],
  ['no class', 'type', () => withHead({ typ: undefined })],
  ['the class of a logout token', 'type', () => withHead({ typ: 'logout+jwt' })],
  ['the class of a DPoP proof', 'type', () => withHead({ typ: 'dpop+jwt' })],
  ['a list as class', 'type', () => withHead({ typ: ['at+jwt'] })],
  ['a session JWT of the service', 'form', () => sessionJwt],
  // The issuer.
  ['another issuer', 'issuer', () => make({ iss: 'https://evil.example.test' })],
  ['the issuer with a slash', 'issuer', () => make({ iss: `${BASE_URL}/api/v3/oauth/` })],
  ['the issuer in another case', 'issuer', () => make({ iss: `${BASE_URL}/API/v3/oauth` })],
  ['the base URL as issuer', 'issuer', () => make({ iss: BASE_URL })],
  ['a list with the issuer', 'issuer', () => make({ iss: [`${BASE_URL}/api/v3/oauth`] })],
  ['no issuer', 'issuer', () => make({ iss: undefined })],
  // The audience.
  ['another API', 'audience', () => make({ aud: 'https://other.example.test/api' })],
  ['the API and another one', 'audience', () => make({ aud: [`${BASE_URL}/api/v3`, 'https://other.example.test'] })],
  ['no audience', 'audience', () => make({ aud: undefined })],
  ['an empty list of audiences', 'audience', () => make({ aud: [] })],
  ['an address below the API', 'audience', () => make({ aud: `${BASE_URL}/api/v3/contract` })],
  ['the word of a managed engine', 'audience', () => make({ aud: 'authenticated' })],
  // The times.
  ['an expired token', 'expired', () => make({ iat: at(-910), exp: at(-5) })],
  ['a token of tomorrow', 'not_yet_valid', () => make({ iat: at(86_400), exp: at(86_500) })],
  ['nbf in the future', 'not_yet_valid', () => make({ nbf: at(60) })],
  ['no end', 'times', () => make({ exp: undefined })],
  ['no time of issue', 'times', () => make({ iat: undefined })],
  ['an end as text', 'times', () => make({ exp: String(at(900)) })],
  ['an end before the issue', 'times', () => make({ iat: at(0), exp: at(-1) })],
  ['an end in the year 10000', 'times', () => make({ exp: 253_402_300_800 })],
  ['an end in milliseconds', 'times', () => make({ exp: (at(0) + 900) * 1000 })],
  ['a life of two days', 'lifetime', () => make({ exp: at(172_800) })],
  // The user and the app.
  ['no subject', 'subject', () => make({ sub: undefined })],
  ['an address as subject', 'subject', () => make({ sub: 'admin@signalbox.localhost' })],
  ['SQL as subject', 'subject', () => make({ sub: "' or 1=1 --" })],
  ['an unknown subject', 'user_unknown', () => make({ sub: '01990000-0000-7000-8000-000000000000' })],
  ['no app', 'client', () => make({ client_id: undefined })],
  ['a list of apps', 'client', () => make({ client_id: ['client-of-a-test'] })],
  ['an app with a line end', 'client', () => make({ client_id: 'client\nforged log line' })],
  ['another authorized party', 'client', () => make({ azp: 'another' })],
  ['a list of scopes', 'scope', () => make({ scope: ['contract:write'] })],
  ['a scope of 3000 letters', 'scope', () => make({ scope: 's'.repeat(3_000) })],
  ['an object as grant', 'grant', () => make({ grant_id: { $ne: null } })],
  ['a token that is bound to a key', 'bound_token', () => make({ cnf: { jkt: 'x' } })],
]

describe('the exchange refuses', () => {
  test.each(ATTACKS)('%s', async (_name, reason, attack) => {
    const answer = await fixture.exchange(attack())
    expect(answer).toMatchObject({ status: 401, body: { code: 'oauth_exchange_failed' } })
    expect(await fixture.entriesOf(answer)).toMatchObject([{ outcome: 'failure', session: null, detail: { reason } }])
  })

  test('each attack with the same answer', async () => {
    const answers: TestAnswer[] = []
    for (const [, , attack] of ATTACKS) answers.push(await fixture.exchange(attack()))
    const seen = answers.map(({ status, body, headers }) => {
      const { request_id: _, ...rest } = body
      const { date: _d, 'x-request-id': _r, ratelimit: _l, ...kept } = headers
      return JSON.stringify([status, rest, kept])
    })
    expect(new Set(seen).size).toBe(1)
  })

  test('each attack with the same statements', async () => {
    const seen = new Set<string>()
    for (const [, , attack] of ATTACKS) {
      const count = countTraffic(fixture.app.database.pool)
      await fixture.exchange(attack())
      const { statements, roundTrips } = count.stop()
      seen.add(`${statements} ${roundTrips}`)
    }
    expect([...seen]).toHaveLength(1)
  })

  test('a token in the query, in a cookie, and as a bearer', async () => {
    const token = make()
    const tries = [
      await fixture.app.anonymous('POST', `${EXCHANGE}?token=${token}`),
      await fixture.app.anonymous('POST', EXCHANGE, undefined, { cookie: `token=${token}` }),
      await fixture.app.callAs(token)('POST', EXCHANGE),
    ]
    expect(tries.map(({ status }) => status)).toEqual([422, 422, 422])
  })

  test('an access token as a bearer of the API', async () => {
    expect((await fixture.app.callAs(make())('GET', '/api/v3/auth/session')).status).toBe(401)
  })

  test('the session JWT that it answered', async () => {
    const { jwt } = (await fixture.exchange(make())).body
    expect((await fixture.exchange(jwt)).status).toBe(401)
  })

  test('a body of a megabyte, before it is read as a token', async () => {
    const answer = await fixture.exchange('A'.repeat(1_048_576))
    expect(answer).toMatchObject({ status: 413, body: { code: 'body_too_large' } })
  })

  test('a form of a megabyte', async () => {
    const answer = await fixture.exchangeForm(`grant_type=${GRANT_TYPE}&subject_token=${'A'.repeat(1_048_576)}`)
    expect(answer.status).toBe(413)
  })

  test('a form of thirty thousand parameters, soon', async () => {
    const fields = Array.from({ length: 5_000 }, (_, index) => `a${index}=1`).join('&')
    const answer = await fixture.exchangeForm(fields)
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })

  test('parameters that collide with names of the language', async () => {
    for (const name of ['constructor', 'toString', 'hasOwnProperty'])
      expect((await fixture.exchangeForm(`${name}=1&grant_type=x`)).body.error).toBe('unsupported_grant_type')
    expect((await fixture.exchangeForm('__proto__=1')).status).toBe(400)
  })

  test('an error that repeats what was sent', async () => {
    const marker = 'marker-of-a-test'
    const answers = [
      await fixture.exchange(marker),
      await fixture.exchangeForm({ grant_type: marker, subject_token: marker, subject_token_type: TOKEN_TYPE }),
      await fixture.exchangeForm({
        grant_type: GRANT_TYPE,
        subject_token: marker,
        subject_token_type: marker,
        scope: marker,
      }),
    ]
    for (const { body } of answers) expect(JSON.stringify(body)).not.toContain(marker)
  })

  test('two hundred forgeries in parallel, with one read of the keys', async () => {
    const before = fixture.issuer.reads
    const forged = Array.from({ length: 200 }, (_, index) => withHead({ kid: `storm-${index}` }))
    const answers = await Promise.all(forged.map((token) => fixture.exchange(token)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]))
    expect(fixture.issuer.reads - before).toBeLessThanOrEqual(1)
  })
})

describe('the exchange takes', () => {
  test('the class with its prefix, as RFC 9068 allows', async () => {
    expect((await fixture.exchange(withHead({ typ: 'application/at+jwt' }))).status).toBe(200)
    expect((await fixture.exchange(withHead({ typ: 'AT+JWT' }))).status).toBe(200)
  })

  test('the API as the only one of a list of audiences', async () => {
    expect((await fixture.exchange(make({ aud: [`${BASE_URL}/api/v3`] }))).status).toBe(200)
  })

  test('a token without scope, for a session that may do nothing', async () => {
    const { status, body } = await fixture.exchange(make({ scope: undefined }))
    expect(status).toBe(200)
    expect((await fixture.app.callAs(body.jwt)('GET', '/api/v3/contract/contract')).status).toBe(403)
  })

  test('scopes that the catalogue does not have, which open nothing', async () => {
    const { body } = await fixture.exchange(make({ scope: '*:* contract:* admin __proto__' }))
    expect((await fixture.app.callAs(body.jwt)('GET', '/api/v3/contract/contract')).status).toBe(403)
  })
})

import { createHmac, generateKeyPairSync, sign as signAsymmetric } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import {
  BASE_URL,
  CARRIER_HEAD,
  carrierClaims,
  createSsoApp,
  HANDSHAKE_HEAD,
  HANDSHAKE_SECRET,
  handshakeClaims,
  OTHER_TARGET,
  readPayload,
  SESSION_SECRET,
  type SignedIn,
  type SsoApp,
  sign,
  signForeign,
  signRaw,
  TARGET,
} from '../../../test/harness/app/sso-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

let user: SignedIn
let stranger: SignedIn

const sso = await openForFile(createSsoApp())
beforeEach(async () => {
  // Equal refusals of a minute are one audit entry: each test has a minute of its own.
  sso.app.clock.advance(60_000)
  user = await sso.signIn()
  stranger = await sso.signIn()
})

const sharedParts = () => ({ database: sso.app.database, clock: sso.app.clock })
const claims = (change: object = {}) => ({ ...handshakeClaims(user, sso.seconds()), ...change })
const make = (change: object = {}) => sign(HANDSHAKE_HEAD, claims(change))
const withHead = (head: object) => sign(head, claims())
const carrier = (change: object = {}) => sign(CARRIER_HEAD, { ...carrierClaims(user, sso.seconds()), ...change })
const at = (seconds: number) => sso.seconds() + seconds

/** The token with an unsigned change of its text: header, payload or signature. */
function alter(token: string, part: 0 | 1 | 2, change: (text: string) => string): string {
  return token
    .split('.')
    .map((text, index) => (index === part ? change(text) : text))
    .join('.')
}

const decode = (text: string) => Buffer.from(text, 'base64url').toString()
const encode = (text: string) => Buffer.from(text).toString('base64url')

/** Changes the last character of a signature to the other one that decodes to the same bytes. */
function respell(signature: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  return signature.slice(0, -1) + letters[letters.indexOf(signature.at(-1) ?? '') ^ 1]
}

function signWith(algorithm: 'RS256' | 'EdDSA' | 'HS512' | 'HS384'): string {
  const signed = [{ alg: algorithm, typ: 'sso+jwt' }, claims()].map((part) => encode(JSON.stringify(part))).join('.')
  const bytes = Buffer.from(signed)
  const signatures = {
    RS256: () => signAsymmetric('sha256', bytes, generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey),
    EdDSA: () => signAsymmetric(null, bytes, generateKeyPairSync('ed25519').privateKey),
    HS512: () => createHmac('sha512', HANDSHAKE_SECRET).update(signed).digest(),
    HS384: () => createHmac('sha384', HANDSHAKE_SECRET).update(signed).digest(),
  }
  return `${signed}.${signatures[algorithm]().toString('base64url')}`
}

const text = (object: object) => JSON.stringify(object)
const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`

/** The name of an attack, the token, and the reason in the audit log. */
const ATTACKS: [name: string, build: () => string, reason: string][] = [
  // The form.
  ['an empty text', () => '', 'form'],
  ['a text that is no token', () => 'not a token', 'form'],
  ['a token without its signature', () => make().split('.').slice(0, 2).join('.'), 'form'],
  ['an empty signature', () => alter(make(), 2, () => ''), 'form'],
  ['a fourth part', () => `${make()}.e30`, 'form'],
  ['a token cut in the payload', () => make().slice(0, 120), 'form'],
  ['a token cut by two characters', () => make().slice(0, -2), 'form'],
  ['padding behind the signature', () => `${make()}=`, 'form'],
  ['a line end behind the signature', () => `${make()}\n`, 'form'],
  ['a space before the token', () => ` ${make()}`, 'form'],
  ['a second spelling of the signature', () => alter(make(), 2, respell), 'form'],
  ['a signature in the other base64 alphabet', () => alter(make(), 2, () => '+'.repeat(43)), 'form'],
  ['an encrypted token of five parts', () => `${make()}.e30.e30`, 'form'],
  ['a token of 8193 characters', () => make().padEnd(8193, 'A'), 'size'],
  ['a signed token over the size limit', () => make({ fill: 'x'.repeat(8192) }), 'size'],
  // The signature.
  ['a signature of another secret', () => sign(HANDSHAKE_HEAD, claims(), 'x'.repeat(32)), 'signature'],
  ['a signature of the session secret', () => sign(HANDSHAKE_HEAD, claims(), SESSION_SECRET), 'signature'],
  ['an empty secret', () => sign(HANDSHAKE_HEAD, claims(), ''), 'signature'],
  ['a signature of 31 bytes', () => alter(make(), 2, () => Buffer.alloc(31).toString('base64url')), 'signature'],
  ['a signature of zeros', () => alter(make(), 2, () => Buffer.alloc(32).toString('base64url')), 'signature'],
  ['a changed user', () => alter(make(), 1, (part) => encode(decode(part).replace('"aud"', '"aux"'))), 'signature'],
  [
    'a changed expiry',
    () => alter(make(), 1, (part) => encode(text({ ...claims(), exp: at(50), of: part }))),
    'signature',
  ],
  ['a changed header', () => alter(make(), 0, () => encode('{"alg":"HS256"}')), 'signature'],
  ['the signature of another token', () => alter(make(), 2, () => make().split('.')[2] ?? ''), 'signature'],
  // The algorithm.
  ['the algorithm none, unsigned', () => alter(make(), 0, () => encode('{"alg":"none","typ":"sso+jwt"}')), 'signature'],
  ['the algorithm none, signed', () => withHead({ alg: 'none', typ: 'sso+jwt' }), 'algorithm'],
  ['the algorithm None, signed', () => withHead({ alg: 'None', typ: 'sso+jwt' }), 'algorithm'],
  ['the algorithm hs256 in lower case', () => withHead({ alg: 'hs256', typ: 'sso+jwt' }), 'algorithm'],
  ['the algorithm HS512', () => signWith('HS512'), 'signature'],
  ['the algorithm HS384', () => signWith('HS384'), 'signature'],
  ['the algorithm RS256', () => signWith('RS256'), 'signature'],
  ['the algorithm EdDSA', () => signWith('EdDSA'), 'signature'],
  ['the name RS256 over an HMAC', () => withHead({ alg: 'RS256', typ: 'sso+jwt' }), 'algorithm'],
  ['no algorithm', () => withHead({ typ: 'sso+jwt' }), 'algorithm'],
  ['a list of algorithms', () => withHead({ alg: ['HS256'], typ: 'sso+jwt' }), 'algorithm'],
  // The header.
  ['a critical header', () => withHead({ ...HANDSHAKE_HEAD, crit: ['exp'] }), 'critical_header'],
  ['an empty critical header', () => withHead({ ...HANDSHAKE_HEAD, crit: [] }), 'critical_header'],
  ['a carrier inside a token of the class JWT', () => withHead({ alg: 'HS256', typ: 'JWT' }), 'inner_signature'],
  ['the class of an access token', () => withHead({ alg: 'HS256', typ: 'at+jwt' }), 'type'],
  ['the class of a logout token', () => withHead({ alg: 'HS256', typ: 'logout+jwt' }), 'type'],
  ['the class of a carrier', () => withHead(CARRIER_HEAD), 'type'],
  ['a class that is a list', () => withHead({ alg: 'HS256', typ: ['sso+jwt'] }), 'type'],
  ['a class of null', () => withHead({ alg: 'HS256', typ: null }), 'type'],
  ['two algorithms', () => signRaw('{"alg":"none","alg":"HS256","typ":"sso+jwt"}', text(claims())), 'duplicate_key'],
  [
    'two classes, one escaped',
    () => signRaw('{"alg":"HS256","typ":"at+jwt","t\\u0079p":"sso+jwt"}', text(claims())),
    'duplicate_key',
  ],
  ['a header that is a list', () => signRaw('["HS256"]', text(claims())), 'json'],
  ['a header that is no JSON', () => signRaw("{'alg':'HS256'}", text(claims())), 'json'],
  ['a byte order mark before the header', () => signRaw(`\ufeff${text(HANDSHAKE_HEAD)}`, text(claims())), 'json'],
  // The claims as JSON.
  [
    'two users',
    () => signRaw(text(HANDSHAKE_HEAD), text(claims()).replace('{', '{"aud":"https://evil.test",')),
    'duplicate_key',
  ],
  [
    'two expiries in a nested object',
    () => signRaw(text(HANDSHAKE_HEAD), text(claims({ a: 1 })).replace('"a":1', '"a":{"exp":1,"exp":2}')),
    'duplicate_key',
  ],
  [
    'a payload of 17 levels',
    () => signRaw(text(HANDSHAKE_HEAD), text(claims({ a: 1 })).replace('"a":1', `"a":${nested(16)}`)),
    'duplicate_key',
  ],
  ['a payload of 3000 levels', () => signRaw(text(HANDSHAKE_HEAD), nested(3000)), 'json'],
  ['a payload that is null', () => signRaw(text(HANDSHAKE_HEAD), 'null'), 'json'],
  ['a payload that is a text', () => signRaw(text(HANDSHAKE_HEAD), '"claims"'), 'json'],
  ['bytes that are not UTF-8', () => signRaw(text(HANDSHAKE_HEAD), Buffer.from('7b22ff223a317d', 'hex')), 'json'],
  ['claims in the prototype', () => signRaw(text(HANDSHAKE_HEAD), `{"__proto__":${text(claims())}}`), 'issuer'],
  // Issuer and audience.
  ['another issuer', () => make({ iss: 'https://evil.test' }), 'issuer'],
  ['an issuer with a trailing slash', () => make({ iss: `${BASE_URL}/` }), 'issuer'],
  ['an issuer in a list', () => make({ iss: [BASE_URL] }), 'issuer'],
  ['no issuer', () => make({ iss: undefined }), 'issuer'],
  ['an audience that is not registered', () => make({ aud: 'https://evil.test' }), 'audience'],
  ['an audience that begins like a target', () => make({ aud: `${TARGET}.evil.test` }), 'audience'],
  ['an audience with a path', () => make({ aud: `${TARGET}/` }), 'audience'],
  ['an audience in upper case', () => make({ aud: TARGET.toUpperCase() }), 'audience'],
  ['an audience on another port', () => make({ aud: `${TARGET}:8443` }), 'audience'],
  ['an audience over http', () => make({ aud: TARGET.replace('https', 'http') }), 'audience'],
  ['a loopback audience outside development', () => make({ aud: 'http://localhost:3000' }), 'audience'],
  ['a list with the audience', () => make({ aud: [TARGET] }), 'audience'],
  ['a list of two audiences', () => make({ aud: [TARGET, OTHER_TARGET] }), 'audience'],
  ['the audience of a session', () => make({ aud: 'signalbox' }), 'audience'],
  ['no audience', () => make({ aud: undefined }), 'audience'],
  // Times.
  ['no expiry', () => make({ exp: undefined }), 'times'],
  ['no time of issue', () => make({ iat: undefined }), 'times'],
  ['a fraction as expiry', () => make({ exp: at(30) + 0.5 }), 'times'],
  ['a fraction as time of issue', () => make({ iat: at(0) - 0.5 }), 'times'],
  ['an expiry as a text', () => make({ exp: String(at(30)) }), 'times'],
  ['an expiry beyond every integer', () => make({ exp: 1e300 }), 'times'],
  ['a negative time of issue', () => make({ iat: -1 }), 'times'],
  ['an expiry at the time of issue', () => make({ exp: at(0) }), 'times'],
  ['an expiry before the time of issue', () => make({ iat: at(4), exp: at(3) }), 'times'],
  ['a not-before as a text', () => make({ nbf: 'now' }), 'times'],
  ['a not-before of null', () => make({ nbf: null }), 'times'],
  ['an expiry 5 s ago', () => make({ iat: at(-60), exp: at(-5) }), 'expired'],
  ['a time of issue 6 s ahead', () => make({ iat: at(6), exp: at(60) }), 'not_yet_valid'],
  ['a not-before 6 s ahead', () => make({ nbf: at(6) }), 'not_yet_valid'],
  ['a lifetime of 61 s', () => make({ exp: at(61) }), 'lifetime'],
  ['a lifetime of a year', () => make({ exp: at(31_536_000) }), 'lifetime'],
  // Nonce and next.
  ['no nonce', () => make({ nonce: undefined }), 'nonce'],
  ['a nonce of 21 characters', () => make({ nonce: 'n'.repeat(21) }), 'nonce'],
  ['a nonce of 256 characters', () => make({ nonce: 'n'.repeat(256) }), 'nonce'],
  ['a nonce that is a number', () => make({ nonce: 1e30 }), 'nonce'],
  ['a nonce that is a list', () => make({ nonce: ['n'.repeat(32)] }), 'nonce'],
  ['a next on another host', () => make({ next: '//evil.test' }), 'next'],
  ['a next that is a URL', () => make({ next: 'https://evil.test/' }), 'next'],
  ['a next that becomes another host', () => make({ next: '/a/..//evil.test' }), 'next'],
  ['a next of null', () => make({ next: null }), 'next'],
  ['a next that is a list', () => make({ next: ['/'] }), 'next'],
  // The token inside.
  ['no inner token', () => make({ jwt: undefined }), 'inner_missing'],
  ['an inner token that is an object', () => make({ jwt: {} }), 'inner_missing'],
  ['an empty inner token', () => make({ jwt: '' }), 'inner_form'],
  ['a session JWT inside the class sso+jwt', () => make({ jwt: user.jwt }), 'inner_signature'],
  [
    'a carrier inside a token without a class',
    () => signForeign(user, sso.seconds(), { jwt: carrier() }),
    'inner_signature',
  ],
  ['a handshake inside a handshake', () => make({ jwt: make() }), 'inner_type'],
  [
    'a carrier of another secret',
    () => make({ jwt: sign(CARRIER_HEAD, carrierClaims(user, sso.seconds()), 'x'.repeat(32)) }),
    'inner_signature',
  ],
  [
    'a carrier under the session secret',
    () => make({ jwt: sign(CARRIER_HEAD, carrierClaims(user, sso.seconds()), SESSION_SECRET) }),
    'inner_signature',
  ],
  [
    'a carrier without a class',
    () => make({ jwt: sign({ alg: 'HS256' }, carrierClaims(user, sso.seconds())) }),
    'inner_type',
  ],
  [
    'a carrier with the algorithm none',
    () => make({ jwt: sign({ ...CARRIER_HEAD, alg: 'none' }, carrierClaims(user, sso.seconds())) }),
    'inner_algorithm',
  ],
  ['a carrier for another audience', () => make({ jwt: carrier({ aud: TARGET }) }), 'inner_audience'],
  ['a carrier of another issuer', () => make({ jwt: carrier({ iss: 'https://evil.test' }) }), 'inner_issuer'],
  ['an expired carrier', () => make({ jwt: carrier({ iat: at(-60), exp: at(-5) }) }), 'inner_expired'],
  ['a carrier that lives an hour', () => make({ jwt: carrier({ exp: at(3600) }) }), 'inner_lifetime'],
  ['a carrier without a user', () => make({ jwt: carrier({ sub: undefined }) }), 'inner_claims'],
  ['a carrier whose session is no id', () => make({ jwt: carrier({ sid: "' or true --" }) }), 'inner_claims'],
  [
    'a carrier of the session of another user',
    () => make({ jwt: carrier({ sid: stranger.sessionId }) }),
    'session_unknown',
  ],
  [
    'a carrier of a session that never was',
    () => make({ jwt: carrier({ sid: '00000000-0000-7000-8000-000000000000' }) }),
    'session_unknown',
  ],
  [
    'a session JWT with a changed payload inside',
    () =>
      signForeign(user, sso.seconds(), {
        jwt: alter(user.jwt, 1, () => encode(text({ ...readPayload(user.jwt), sub: stranger.userId }))),
      }),
    'inner_signature',
  ],
  [
    'a session JWT signed with the handshake secret inside',
    () => signForeign(user, sso.seconds(), { jwt: sign({ alg: 'HS256', typ: 'JWT' }, readPayload(user.jwt)) }),
    'inner_signature',
  ],
]

/** The claims of a token of another issuer, with an ordinary session JWT inside. */
const foreignClaims = () => readPayload(signForeign(user, sso.seconds()))

/** The answer without what belongs to one request. */
function strip({ status, headers, body }: Awaited<ReturnType<SsoApp['exchange']>>) {
  const { request_id, ...rest } = body
  const { date, 'x-request-id': id, ratelimit, 'content-length': length, ...other } = headers
  expect([typeof request_id, typeof id, typeof date, typeof ratelimit, typeof length]).not.toContain('undefined')
  return { status, headers: other, body: rest }
}

test.each(ATTACKS)('%s is refused, opens no session and takes no nonce', async (_name, build, reason) => {
  const [sessions, nonces] = [await sso.countSessions(), await sso.countNonces()]
  const answer = await sso.exchange(build())
  expect(strip(answer)).toEqual(strip(await sso.exchange('another text')))
  expect(answer).toMatchObject({ status: 401, body: { code: 'sso_exchange_failed' } })
  expect(await sso.entriesOf(answer)).toMatchObject([{ outcome: 'failure', detail: { reason } }])
  expect([await sso.countSessions(), await sso.countNonces()]).toEqual([sessions, nonces])
})

test.each<[string, () => string]>([
  ['a token as the service makes it', () => make()],
  ['an expiry 4 s ago', () => make({ iat: at(-60), exp: at(-4), jwt: carrier({ iat: at(-60), exp: at(-4) }) })],
  ['a time of issue 5 s ahead', () => make({ iat: at(5), exp: at(60) })],
  ['a not-before 5 s ahead', () => make({ nbf: at(5) })],
  ['a lifetime of 60 s', () => make({ exp: at(60) })],
  ['a lifetime of one second', () => make({ exp: at(1) })],
  ['a key id that is a path, ignored', () => withHead({ ...HANDSHAKE_HEAD, kid: '../../etc/passwd' })],
  ['a key id that is a query, ignored', () => withHead({ ...HANDSHAKE_HEAD, kid: "' or true --" })],
  ['a class in upper case', () => withHead({ alg: 'HS256', typ: 'SSO+JWT' })],
  ['a session JWT inside the class JWT', () => sign({ alg: 'HS256', typ: 'JWT' }, foreignClaims())],
  ['a session JWT inside the class jwt, in lower case', () => sign({ alg: 'HS256', typ: 'jwt' }, foreignClaims())],
  ['spaces in the JSON', () => signRaw(JSON.stringify(HANDSHAKE_HEAD, null, 2), JSON.stringify(claims(), null, 2))],
  ['a claim that the service does not know', () => make({ locale: 'de', nested: { exp: 1 } })],
  ['a nonce of 22 characters', () => make({ nonce: 'abcdefghijklmnopqrstuv' })],
  ['a nonce of 255 characters', () => make({ nonce: 'n'.repeat(255) })],
  [
    'a payload of 16 levels',
    () => signRaw(text(HANDSHAKE_HEAD), text(claims({ a: 1 })).replace('"a":1', `"a":${nested(15)}`)),
  ],
])('%s is accepted', async (_name, build) => {
  const answer = await sso.exchange(build())
  expect(answer.status, JSON.stringify(await sso.entriesOf(answer))).toBe(200)
})

test('a carrier, a handshake token and a session JWT under the handshake secret are no bearer tokens', async () => {
  const tokens = [carrier(), make(), await sso.mint(user), String(readPayload(await sso.mint(user)).jwt)]
  const forged = sign({ alg: 'HS256', typ: 'JWT' }, readPayload(user.jwt))
  for (const token of [...tokens, forged]) expect(await sso.isAccepted(token)).toBe(false)
})

test('a carrier alone is no handshake token', async () => {
  expect((await sso.exchange(readPayload(await sso.mint(user)).jwt)).status).toBe(401)
})

test('a session JWT alone is no handshake token', async () => {
  expect((await sso.exchange(user.jwt)).status).toBe(401)
})

test('an ordinary session JWT inside is refused when SSO_ACCEPT_SESSION_JWT is false', async () => {
  await using strict = await createSsoApp({ ...sharedParts(), env: { SSO_ACCEPT_SESSION_JWT: 'false' } })
  for (const head of [{ alg: 'HS256' }, { alg: 'HS256', typ: 'JWT' }]) {
    sso.app.clock.advance(60_000)
    const answer = await strict.exchange(sign(head, foreignClaims()))
    expect(answer.status).toBe(401)
    expect(await strict.entriesOf(answer)).toMatchObject([{ detail: { reason: 'type' } }])
  }
  expect((await strict.exchange(sign(HANDSHAKE_HEAD, handshakeClaims(user, strict.seconds())))).status).toBe(200)
})

test('the issuer of a token is SSO_HANDSHAKE_ISSUER where that is set', async () => {
  const issuer = 'https://issuer.example.test'
  await using other = await createSsoApp({ ...sharedParts(), env: { SSO_HANDSHAKE_ISSUER: issuer } })
  expect(readPayload(await other.mint(user)).iss).toBe(issuer)
  expect((await other.exchange(await other.mint(user))).status).toBe(200)
  expect((await other.exchange(await sso.mint(user))).status).toBe(401)
  expect((await sso.exchange(await other.mint(user))).status).toBe(401)
})

test('every reason of a refusal is explained to operators', async () => {
  const text = await readFile(join(import.meta.dirname, '..', '..', '..', 'docs', 'operations.md'), 'utf8')
  const section = text.slice(text.indexOf('### A handshake that fails'), text.indexOf('### A token that leaked'))
  const explained = [...section.matchAll(/^\| (`.+?) \|/gm)].flatMap(([, cell = '']) => cell.match(/[a-z_]+/g) ?? [])
  const reasons = ATTACKS.map(([, , reason]) => (reason.startsWith('inner_') ? 'inner_' : reason))
  expect([...new Set(reasons)].filter((reason) => !explained.includes(reason))).toEqual([])
})

import { createPublicKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { headOf, makeKey, signParts } from '../../../test/harness/app/token-issuer.ts'
import { LEEWAY_SECONDS, readBeginning, verifyAccessToken } from './access-token.ts'
import { presentToken } from './exchange.ts'
import type { TokenIssuer } from './token-issuer.ts'

/** Limits and members that the attacks over the API leave open (src/oauth/token-attacks.slow.test.ts). */

const NOW = 1_800_000_000
const USER = '01990000-0000-7000-8000-000000000001'
const key = makeKey('key-1')

const buildIssuer = (more: Partial<TokenIssuer> = {}): TokenIssuer => ({
  ...{ isOwn: true, isKept: false, issuer: () => 'https://id.example.test', audiences: () => ['api', 'other api'] },
  ...{ types: ['at+jwt'], grantClaim: 'grant_id', scopeClaims: ['scope', 'api_scope'] },
  keys: {
    find: async () => createPublicKey({ key: key.jwk as never, format: 'jwk' }),
  } as unknown as TokenIssuer['keys'],
  ...more,
})

const CLAIMS = {
  ...{ iss: 'https://id.example.test', aud: 'api', sub: USER, client_id: 'app', scope: 'openid' },
  ...{ iat: NOW, exp: NOW + 900 },
}

async function verify(claims: object, { header = {}, issuer = buildIssuer() } = {}) {
  const token = signParts({ ...headOf(key), ...header }, { ...CLAIMS, ...claims }, key)
  const result = await verifyAccessToken([issuer], token, new Date(NOW * 1000))
  return result.ok ? result.token : result.reason
}

const encodedLength = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url').length

describe('an access token', () => {
  test('is read with its grant, its id and its times', async () => {
    const read = await verify({ grant_id: 'grant', jti: 'one', auth_time: NOW - 60, api_scope: 'webhook:read' })
    expect(read).toEqual({
      ...{ isOwn: true, isKept: false, subject: USER, clientId: 'app', scope: 'openid webhook:read' },
      ...{ grantId: 'grant', tokenId: 'one', authTime: new Date((NOW - 60) * 1000) },
      ...{ beganAt: new Date(NOW * 1000), expiresAt: new Date((NOW + 900) * 1000) },
    })
  })

  test('without them is read, too', async () => {
    expect(await verify({ auth_time: 'then', scope: undefined })).toMatchObject({
      ...{ scope: '', grantId: null, tokenId: null, authTime: null },
    })
  })

  test.each<[name: string, reason: string, atLimit: object, beyond: object]>([
    ['the client', 'client', { client_id: 'c'.repeat(255) }, { client_id: 'c'.repeat(256) }],
    ['the scope', 'scope', { scope: 's'.repeat(2_048) }, { scope: 's'.repeat(2_049) }],
    ['the second scope', 'scope', { api_scope: 's'.repeat(2_048) }, { api_scope: 's'.repeat(2_049) }],
    ['the grant', 'grant', { grant_id: 'g'.repeat(255) }, { grant_id: 'g'.repeat(256) }],
    ['the id', 'grant', { jti: 'i'.repeat(255) }, { jti: 'i'.repeat(256) }],
    ['the life', 'lifetime', { exp: NOW + 86_400 }, { exp: NOW + 86_401 }],
    ['the start', 'not_yet_valid', { iat: NOW + LEEWAY_SECONDS }, { iat: NOW + LEEWAY_SECONDS + 1 }],
    ['the party', 'client', { azp: 'app' }, { azp: 'other' }],
    ['the audiences', 'audience', { aud: ['api', 'other api'] }, { aud: ['api', 'strange'] }],
  ])('%s has a limit, which is refused beyond as %s', async (_name, reason, atLimit, beyond) => {
    expect(await verify(atLimit)).toMatchObject({ subject: USER })
    expect(await verify(beyond)).toBe(reason)
  })

  test('has at most 8192 characters', async () => {
    const read = (length: number) => {
      const dots = 2
      const open = length - dots - 86
      // No text has 4n + 1 characters: the header takes what the claims cannot.
      const header = { ...headOf(key), pad: 'p'.repeat(200 + (open % 4)) }
      const left = open - encodedLength(header)
      const pad = 'p'.repeat(Math.floor((left * 3) / 4) - JSON.stringify({ ...CLAIMS, pad: '' }).length)
      const token = signParts(header, { ...CLAIMS, pad }, key)
      expect(token).toHaveLength(length)
      return verifyAccessToken([buildIssuer()], token, new Date(NOW * 1000))
    }
    expect(await read(8_192)).toMatchObject({ ok: true })
    expect(await read(8_193)).toEqual({ ok: false, reason: 'size' })
  })

  test('has a subject that is a text, and no extension in its header', async () => {
    for (const sub of [[USER], 7, 'user']) expect(await verify({ sub })).toBe('subject')
    for (const header of [{ b64: false }, { b64: true }, { crit: ['b64'] }, { crit: [] }])
      expect(await verify({}, { header })).toBe('critical_header')
  })

  test('has three parts, each of base64url, of which the last is a signature', async () => {
    const [header = '', claims = '', signature = ''] = signParts(headOf(key), CLAIMS, key).split('.')
    for (const parts of [
      ['', claims, signature],
      [header, '', signature],
      [header, claims, ''],
      [`${header}=`, claims, signature],
      [header, `${claims}+`, signature],
      [header, claims, signature.slice(0, -2)],
      [header, claims, signature, ''],
      [header, claims],
    ])
      expect(await verifyAccessToken([buildIssuer()], parts.join('.'), new Date(NOW * 1000))).toEqual({
        ...{ ok: false, reason: 'form' },
      })
  })

  test('has a key id of at most 255 characters', async () => {
    expect(await verify({}, { header: { kid: 'k'.repeat(255) } })).toMatchObject({ subject: USER })
    expect(await verify({}, { header: { kid: 'k'.repeat(256) } })).toBe('key_id')
  })

  test('has a class that its issuer names, or none where the issuer has none', async () => {
    const issuer = buildIssuer({ types: ['jwt', undefined] })
    const read = (typ: unknown) => verify({}, { header: { typ }, issuer })
    expect(await read('JWT')).toMatchObject({ subject: USER })
    expect(await read(undefined)).toMatchObject({ subject: USER })
    for (const typ of ['at+jwt', '', null, 1, ['jwt']]) expect(await read(typ)).toBe('type')
  })
})

test('the start of a session is its latest sign-in, of the first 32 that a token names', () => {
  const [old, late] = [{ timestamp: 10 }, { timestamp: 20 }]
  expect(readBeginning({ amr: [old, late, { timestamp: 15 }] })).toBe(20)
  expect(readBeginning({ amr: [null, 'pwd', { timestamp: '30' }, old] })).toBe(10)
  expect(readBeginning({ amr: [...Array.from({ length: 31 }, () => old), late] })).toBe(20)
  expect(readBeginning({ amr: [...Array.from({ length: 32 }, () => old), late] })).toBe(10)
  for (const amr of [undefined, 'pwd', [], ['pwd']]) expect(readBeginning({ amr })).toBeUndefined()
})

describe('a token of an issuer that keeps its sessions', () => {
  const present = (askOnline: NonNullable<TokenIssuer['askOnline']>) => {
    const token = signParts(headOf(key), CLAIMS, key)
    return presentToken({ tokenIssuers: [buildIssuer({ askOnline })] }, token, new Date(NOW * 1000))
  }

  test('opens a session while its own one lives, and is refused for the reason that the issuer gives', async () => {
    const token = expect.objectContaining({ subject: USER })
    expect(await present(async () => ({ isLiving: true }))).toEqual({ ok: true, token })
    expect(await present(async () => ({ isLiving: false, reason: 'session_ended' }))).toEqual({
      ...{ ok: false, reason: 'session_ended', token },
    })
  })

  test('is neither taken nor refused while the issuer does not answer', async () => {
    await expect(present(() => Promise.reject(new Error('no answer')))).rejects.toMatchObject({
      ...{ code: 'dependency_unavailable', headers: { 'retry-after': '5' } },
    })
  })
})

import { describe, expect, test } from 'vitest'
import type { AccountId, SessionId, UserId } from '../../../base/id.ts'
import { signHs256 } from './hs256.ts'
import {
  isOwnIssuer,
  type SessionClaims,
  type SessionKeys,
  signSessionToken,
  verifySessionToken,
} from './session-token.ts'

const keys: SessionKeys = { secrets: ['first secret', 'second secret'], issuer: () => 'https://id.test' }
const issuedAt = new Date('2026-09-11T12:00:00.000Z')
const claims: SessionClaims = {
  userId: '01994000-0000-7000-8000-000000000001' as UserId,
  sessionId: '01994000-0000-7000-8000-000000000002' as SessionId,
  accountId: '01994000-0000-7000-8000-000000000003' as AccountId,
  tokenId: 'token',
  issuedAt,
  expiresAt: new Date('2026-09-11T13:00:00.000Z'),
}
const facts = { amr: ['pwd'], acr: 'aal1', authTime: new Date('2026-09-11T11:30:00.900Z') }
const wire = {
  iss: 'https://id.test',
  aud: 'signalbox',
  sub: claims.userId,
  sid: claims.sessionId,
  account: claims.accountId,
  iat: issuedAt.getTime() / 1000,
  exp: issuedAt.getTime() / 1000 + 3600,
  jti: 'token',
  amr: ['pwd'],
  acr: 'aal1',
  auth_time: Date.parse('2026-09-11T11:30:00Z') / 1000,
}
const sign = (change: Record<string, unknown>, type = 'JWT') =>
  signHs256({ ...wire, ...change }, { secret: 'first secret', type })
const isTaken = (token: string, now = issuedAt) => verifySessionToken(keys, token, now).ok

describe('a session JWT', () => {
  test('has exactly the claims of the contract, and verifies', () => {
    const token = signSessionToken(keys, { ...claims, ...facts })
    expect(JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString())).toEqual(wire)
    expect(JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString())).toEqual({ alg: 'HS256', typ: 'JWT' })
    expect(verifySessionToken(keys, token, issuedAt)).toEqual({ ok: true, claims })
  })

  test('is signed with the first secret and verified with every listed one', () => {
    const token = signSessionToken(keys, { ...claims, ...facts })
    const withSecrets = (...secrets: string[]) => verifySessionToken({ ...keys, secrets }, token, issuedAt).ok
    expect(withSecrets('new secret', 'first secret')).toBe(true)
    expect(withSecrets('second secret')).toBe(false)
  })

  test('verifies without the claims on the sign-in, as older ones have none', () => {
    expect(isTaken(sign({ amr: undefined, acr: undefined, auth_time: undefined }))).toBe(true)
  })

  test('may end with the year 9999', () => {
    expect(isTaken(sign({ exp: 253_402_300_799 }))).toBe(true)
  })

  test('may have no account', () => {
    const token = signSessionToken(keys, { ...claims, ...facts, accountId: null })
    expect(verifySessionToken(keys, token, issuedAt)).toMatchObject({ ok: true, claims: { accountId: null } })
  })

  test.each([
    ['a handshake', () => sign({}, 'sso+jwt')],
    ['a carrier', () => sign({}, 'sso-inner+jwt')],
    ['an OAuth access token', () => sign({}, 'at+jwt')],
    ['a logout token', () => sign({}, 'logout+jwt')],
    ['of another issuer', () => sign({ iss: 'https://evil.test' })],
    ['for another audience', () => sign({ aud: 'sso-exchange' })],
    ['for a list of audiences', () => sign({ aud: ['signalbox'] })],
    ['without a user', () => sign({ sub: undefined })],
    ['with a user that is no id', () => sign({ sub: 'root' })],
    ['without a session', () => sign({ sid: undefined })],
    ['with a session that is no id', () => sign({ sid: "' or true --" })],
    ['without an account member', () => sign({ account: undefined })],
    ['with an account that is no id', () => sign({ account: 7 })],
    ['without an id of its own', () => sign({ jti: undefined })],
    ['with an id of its own that is too long', () => sign({ jti: 'x'.repeat(256) })],
    ['with an end after the year 9999', () => sign({ exp: 253_402_300_800 })],
    ['with a list of one user', () => sign({ sub: [claims.userId] })],
    ['with a list of one session', () => sign({ sid: [claims.sessionId] })],
    ['with a list of one account', () => sign({ account: [claims.accountId] })],
  ])('is refused when it is %s', (_name, make) => {
    expect(isTaken(sign({}))).toBe(true)
    expect(isTaken(make())).toBe(false)
  })

  test('is valid until five seconds after exp, for clock skew', () => {
    const token = signSessionToken(keys, { ...claims, ...facts })
    expect(isTaken(token, new Date(claims.expiresAt.getTime() + 4_999))).toBe(true)
    expect(isTaken(token, new Date(claims.expiresAt.getTime() + 5_000))).toBe(false)
  })
})

describe('the own issuer', () => {
  test.each([
    ['https://id.test', 'https://id.test', true],
    ['https://id.test/', 'https://id.test', false],
    ['https://id.test.evil.test', 'https://id.test', false],
    ['http://localhost:3001', 'http://localhost:3000', true],
    ['http://localhost:3001.evil.test', 'http://localhost:3000', false],
    ['http://localhost:3001/x', 'http://localhost:3000', false],
    ['https://localhost:3001', 'http://localhost:3000', false],
    ['http://localhost:3001', 'https://id.test', false],
  ])('%s for a service at %s: %s', (iss, baseUrl, isOwn) => {
    expect(isOwnIssuer(iss, baseUrl)).toBe(isOwn)
  })
})

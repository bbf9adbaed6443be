import { describe, expect, test } from 'vitest'
import type { ConnectionRecord } from './connection.store.ts'
import { type KindInput, readKindChange, readNewKind } from './settings-of-kind.ts'

const DEPS = { callbackRules: { allowHttp: false, allowedPrivateTargets: [] } }
const ISSUER = 'https://login.example.com'
const OIDC = { issuer: ISSUER, client_id: 'id', client_secret: 'secret' }
const problemAt = (path: string, code?: string) => ({
  errors: [{ path, ...(code !== undefined && { code }) }],
})
const catchFrom = (run: () => unknown): unknown => {
  try {
    return run()
  } catch (error) {
    return error
  }
}

describe('a new connection of OpenID Connect', () => {
  const read = (oidc?: KindInput['oidc']) => readNewKind(DEPS, { kind: 'oidc', ...(oidc && { oidc }) })

  test('has the usual scopes, no claim of groups, and no trust in addresses, but for what is said', () => {
    const { columns, secret } = read(OIDC)
    expect(secret).toBe('secret')
    expect(columns).toEqual({
      ...{ issuer: ISSUER, clientId: 'id', scopes: ['openid', 'email', 'profile'], groupsClaim: null },
      ...{ isEmailTrusted: false, ssoUrl: null, certificates: null, emailAttribute: null, nameAttribute: null },
      certificatesEndAt: null,
    })
    const said = { ...OIDC, scopes: ['groups', 'openid'], groups_claim: 'groups', is_email_trusted: true }
    expect(read(said).columns).toMatchObject({
      ...{ scopes: ['openid', 'groups'], groupsClaim: 'groups', isEmailTrusted: true },
    })
  })

  test.each<[path: string, oidc: KindInput['oidc']]>([
    ['oidc', undefined],
    ['oidc.issuer', { ...OIDC, issuer: 'http://' }],
    ['oidc.issuer', { ...OIDC, issuer: `${ISSUER}?a` }],
    ['oidc.issuer', { ...OIDC, issuer: `${ISSUER}#a` }],
  ])('is refused at %s', (path, oidc) => {
    expect(catchFrom(() => read(oidc))).toMatchObject(problemAt(path))
  })
})

test('a connection takes the part of its own kind alone', () => {
  const saml = {} as NonNullable<KindInput['saml']>
  expect(catchFrom(() => readNewKind(DEPS, { kind: 'oidc', oidc: OIDC, saml }))).toMatchObject(problemAt('saml'))
  expect(catchFrom(() => readNewKind(DEPS, { kind: 'saml', saml, oidc: OIDC }))).toMatchObject(problemAt('oidc'))
  const before = { kind: 'oidc', issuer: ISSUER } as ConnectionRecord
  expect(catchFrom(() => readKindChange(DEPS, before, { saml }))).toMatchObject(problemAt('saml'))
})

describe('a change', () => {
  const before = { kind: 'oidc', issuer: ISSUER } as ConnectionRecord
  const change = (oidc?: KindInput['oidc']) => readKindChange(DEPS, before, oidc ? { oidc } : {})

  test('has what is said, and nothing else', () => {
    expect([change(), change({})]).toEqual([{}, {}])
    expect(change({ client_id: 'other' })).toEqual({ clientId: 'other' })
    expect(change({ scopes: ['email'] })).toEqual({ scopes: ['openid', 'email'] })
    expect(change({ groups_claim: null, is_email_trusted: false })).toEqual({
      groupsClaim: null,
      isEmailTrusted: false,
    })
    expect(change({ issuer: ISSUER })).toEqual({ issuer: ISSUER })
  })

  test('of the issuer needs a secret of its own', () => {
    const issuer = 'https://other.example.com'
    expect(catchFrom(() => change({ issuer }))).toMatchObject(problemAt('oidc.client_secret', 'required'))
    expect(change({ issuer, client_secret: 'new' })).toEqual({ issuer })
    expect(catchFrom(() => change({ issuer: `${issuer}#a`, client_secret: 'new' }))).toMatchObject(
      problemAt('oidc.issuer'),
    )
  })
})

import { describe, expect, test } from 'vitest'
import {
  findNeededAcrs,
  isNeededAcr,
  limitAskedClaims,
  listClaimsOf,
  listScopesOfClaims,
  readAskedClaims,
} from './asked-claims.ts'

test('the parameter is an object as JSON, and nothing else', () => {
  expect(readAskedClaims('{"userinfo":{"email":null}}')).toEqual({ userinfo: { email: null } })
  for (const text of ['[]', 'null', '"a"', '{', '', undefined, {}, ['{}']]) expect(readAskedClaims(text)).toEqual({})
})

test('scopes open claims, in one order', () => {
  expect(listClaimsOf(['email', 'profile'])).toEqual(['name', 'picture', 'updated_at', 'email', 'email_verified'])
  expect(listClaimsOf(['openid'])).toEqual(['sub'])
  expect(listClaimsOf(['offline_access'])).toEqual([])
})

test('claims ask for the scopes that open them, each once, and never for openid', () => {
  const list = (claims: unknown) => listScopesOfClaims(JSON.stringify(claims))
  const both = { id_token: { email: null, sub: null }, userinfo: { name: null, email_verified: null, other: null } }
  expect(list(both).sort()).toEqual(['email', 'profile'])
  expect(list({ id_token: { email: null } })).toEqual(['email'])
  expect(list({ userinfo: { picture: null } })).toEqual(['profile'])
  expect([list({ userinfo: ['email'] }), list({ userinfo: null, id_token: 'email' }), list('x')]).toEqual([[], [], []])
})

test('claims are limited to the scopes of the client; a claim of no scope stays, as the library ignores it', () => {
  const claims = { id_token: { email: null, acr: null, sub: null }, userinfo: { name: null } }
  expect(limitAskedClaims(claims, ['openid'])).toEqual({ id_token: { acr: null, sub: null }, userinfo: {} })
  expect(limitAskedClaims(claims, ['email', 'profile'])).toEqual(claims)
  expect(limitAskedClaims({ userinfo: { email: null } }, [])).toEqual({ userinfo: {} })
  expect(limitAskedClaims({ id_token: { email: null } }, ['email'])).toEqual({ id_token: { email: null } })
})

describe('the class of a sign-in', () => {
  const need = (acr: unknown) => findNeededAcrs({ id_token: { acr } } as never)

  test('is needed where the request makes it essential, by a value or several', () => {
    expect(need({ essential: true, value: 'aal2' })).toEqual(['aal2'])
    expect(need({ essential: true, values: ['aal1', 'aal2'], value: 'x' })).toEqual(['aal1', 'aal2'])
  })

  test('is free in any other request', () => {
    for (const acr of [null, undefined, 'aal2', [], {}, { essential: true }, { value: 'aal2' }])
      expect(need(acr)).toBeUndefined()
    for (const essential of [false, 'true', 1]) expect(need({ essential, value: 'aal2' })).toBeUndefined()
    for (const claims of [{}, { id_token: null }, { id_token: [] }])
      expect(findNeededAcrs(claims as never)).toBeUndefined()
  })

  test('fits when it is needed, or when none is', () => {
    const text = JSON.stringify({ id_token: { acr: { essential: true, value: 'aal2' } } })
    expect([isNeededAcr(text, 'aal2'), isNeededAcr(text, 'aal1'), isNeededAcr(text, null)]).toEqual([
      true,
      false,
      false,
    ])
    expect([isNeededAcr(undefined, null), isNeededAcr('{}', 'aal1')]).toEqual([true, true])
  })
})

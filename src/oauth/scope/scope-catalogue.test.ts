import { describe, expect, test } from 'vitest'
import { listPermissions, ROUTE_TREE } from '../../app/feature/route-tree.ts'
import { LANGUAGES } from '../../base/language/texts.ts'
import { permissionOf } from '../../http/route/route.ts'
import { findScope, SCOPES } from './scope-catalogue.ts'
import { describeScope } from './scope-text.ts'

/** RFC 6749 section 3.3. */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/

describe('the catalogue of scopes', () => {
  test('names each scope once, by the grammar of OAuth', () => {
    const names = SCOPES.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(SCOPE_TOKEN)
  })

  test('has the scopes of OpenID Connect, which open no permission', () => {
    for (const name of ['openid', 'profile', 'email', 'offline_access'])
      expect(findScope(name)?.permissions).toEqual([])
    // A user may refuse each other one.
    expect(SCOPES.filter(({ isOptional }) => !isOptional).map(({ name }) => name)).toEqual(['openid'])
  })

  test('opens only permissions that a route asks for', () => {
    const asked = new Set([...listPermissions(ROUTE_TREE).map(({ name }) => name), ...ROUTE_TREE.map(permissionOf)])
    for (const { permissions } of SCOPES)
      for (const permission of permissions) expect(asked, permission).toContain(permission)
  })

  test('opens no permission over users, roles, keys, sessions of others or the audit log', () => {
    const closed = /^(user|role|permission|api-key|audit-log|account-member|identity|password|sso|email|oauth[a-z-]*):/
    const opened = SCOPES.flatMap(({ permissions }) => permissions)
    expect(opened.filter((scope) => closed.test(scope))).toEqual([])
    expect(opened.filter((scope) => scope.startsWith('session:'))).toEqual(['session:find-one'])
  })

  test('describes each scope in words that a user can read', () => {
    for (const { name } of SCOPES)
      for (const texts of LANGUAGES) {
        const { title, text } = describeScope(texts, name)
        expect(title, name).toMatch(texts.lang === 'en' ? /^[a-z].*[^.]$/ : /^\p{L}.*[^.]$/u)
        expect(text, name).toMatch(/^[A-Z].*\.$/)
      }
  })

  test('knows no other name', () => {
    expect(findScope('contract:*')).toBeUndefined()
    expect(findScope('constructor')).toBeUndefined()
  })
})

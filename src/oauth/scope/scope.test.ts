import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { listPermissions, ROUTE_TREE } from '../../app/feature/route-tree.ts'
import type { AccountId, UserId } from '../../base/id.ts'
import { permissionOf } from '../../http/route/route.ts'
import { type Caller, findPermissionScope, type PermissionScope } from '../../http/shape/caller.ts'
import { findMissingGrant, findUnheldKeyPattern, type Grant } from '../../identity/access/delegation.ts'
import { findPermissionsOf, listScopeNames } from './scope.ts'
import { SCOPES } from './scope-catalogue.ts'

const PERMISSIONS = [
  ...new Set([
    ...listPermissions(ROUTE_TREE).map(({ name }) => name),
    ...ROUTE_TREE.map((route) => permissionOf(route)),
  ]),
]
const PATTERNS = [...PERMISSIONS, ...new Set(PERMISSIONS.map((permission) => `${permission.split(':')[0]}:*`)), '*:*']
const ACCOUNTS = ['first', 'second', 'third'] as AccountId[]

const somePatterns = fc.subarray(PATTERNS)
const somePlace = fc.constantFrom<Grant['place']>('everywhere', ...ACCOUNTS)
const someGrants = fc.array(fc.record({ pattern: fc.constantFrom(...PATTERNS), place: somePlace }), { maxLength: 5 })
const someUser: fc.Arbitrary<Caller> = fc.record({
  userId: fc.constant('user' as UserId),
  sessionId: fc.constant(null),
  apiKeyId: fc.constant(null),
  clientId: fc.constant(null),
  accountId: fc.constant(null),
  patterns: somePatterns,
  accountPatterns: somePatterns,
  membershipPatterns: fc.array(fc.record({ account: fc.constantFrom(...ACCOUNTS), patterns: somePatterns }), {
    maxLength: 3,
  }),
  accounts: fc.subarray(ACCOUNTS),
  ceiling: fc.constant(null),
  keyAccount: fc.constant(null),
  proof: fc.constant(null),
})
const someName = fc.oneof(
  fc.constantFrom(...SCOPES.map(({ name }) => name)),
  fc.constantFrom('*:*', 'contract:*', 'contract:create', '__proto__', 'constructor', 'CONTRACT:READ', 'unknown'),
)
const someScope = fc.array(someName, { maxLength: 8 }).map((names) => names.join(' '))

const asApp = (user: Caller, scope: string): Caller => ({
  ...user,
  clientId: 'app',
  ceiling: findPermissionsOf(scope),
})

/** Whether `narrow` reaches no row that `wide` does not reach. */
function isWithin(narrow: PermissionScope | undefined, wide: PermissionScope | undefined): boolean {
  if (narrow === undefined || wide === 'all') return true
  if (wide === undefined || narrow === 'all') return false
  return narrow.every((account) => wide.includes(account))
}

describe('a scope', () => {
  test('is a list of names separated by spaces, each counted once', () => {
    expect(listScopeNames('openid contract:read  openid ')).toEqual(['openid', 'contract:read'])
    expect(listScopeNames('')).toEqual([])
  })

  test('opens the permissions of its names, each once', () => {
    expect(findPermissionsOf('contract:read openid contract:read')).toEqual(['contract:find-all', 'contract:find-one'])
  })

  test('opens nothing by a permission, a pattern, or a name of the language', () => {
    expect(findPermissionsOf('*:* contract:* contract:create constructor __proto__ toString')).toEqual([])
  })
})

describe('the ceiling of an app', () => {
  test('reaches exactly what the scopes open of what the user reaches', () => {
    fc.assert(
      fc.property(someUser, someScope, fc.constantFrom(...PERMISSIONS), (user, scope, permission) => {
        const opened = listScopeNames(scope).some((name) =>
          SCOPES.some((scope) => scope.name === name && scope.permissions.includes(permission)),
        )
        const reached = findPermissionScope(asApp(user, scope), permission)
        expect(reached).toEqual(opened ? findPermissionScope(user, permission) : undefined)
      }),
      { numRuns: 500 },
    )
  })

  test('grows with the scopes and with the user, and never beyond either', () => {
    fc.assert(
      fc.property(someUser, someScope, someScope, fc.constantFrom(...PERMISSIONS), (user, scope, more, permission) => {
        const narrow = findPermissionScope(asApp(user, scope), permission)
        expect(isWithin(narrow, findPermissionScope(asApp(user, `${scope} ${more}`), permission))).toBe(true)
        expect(isWithin(narrow, findPermissionScope(user, permission))).toBe(true)
        const administrator = { ...user, patterns: ['*:*'] }
        expect(isWithin(narrow, findPermissionScope(asApp(administrator, scope), permission))).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  test('hands on no grant that a scope does not open or the user does not hold', () => {
    fc.assert(
      fc.property(someUser, someScope, someGrants, (user, scope, grants) => {
        const app = asApp(user, scope)
        if (findMissingGrant(app, grants) !== undefined) return
        expect(findMissingGrant(user, grants)).toBeUndefined()
        for (const { pattern } of grants) expect(findPermissionsOf(scope)).toContain(pattern)
      }),
      { numRuns: 500 },
    )
  })

  test('makes no API key that a scope does not open', () => {
    fc.assert(
      fc.property(someUser, someScope, somePatterns, (user, scope, patterns) => {
        if (findUnheldKeyPattern(asApp(user, scope), patterns) !== undefined) return
        for (const pattern of patterns) expect(findPermissionsOf(scope)).toContain(pattern)
      }),
      { numRuns: 300 },
    )
  })
})

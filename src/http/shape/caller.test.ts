import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AccountId, UserId } from '../../base/id.ts'
import {
  type Caller,
  findPermissionScope,
  includesAccount,
  includesScope,
  matchesPattern,
  type PermissionScope,
} from './caller.ts'

const mine = 'mine' as AccountId
const theirs = 'theirs' as AccountId

function buildCaller(changes: Partial<Caller>): Caller {
  return {
    userId: 'user' as UserId,
    sessionId: null,
    apiKeyId: null,
    clientId: null,
    accountId: null,
    patterns: [],
    accountPatterns: [],
    membershipPatterns: [],
    accounts: [mine],
    ceiling: null,
    keyAccount: null,
    proof: null,
    ...changes,
  }
}

describe('patterns', () => {
  test.each([
    ['*:*', 'webhook:create', true],
    ['webhook:create', 'webhook:create', true],
    ['webhook:*', 'webhook:create', true],
    ['webhook:*', 'webhook-event:create', false],
    ['webhook:*', 'webhook:', true],
    ['webhook:create', 'webhook:create-all', false],
    ['*:create', 'webhook:create', false],
    ['*', 'webhook:create', false],
    ['', 'webhook:create', false],
    ['webhook', 'webhook:create', false],
    ['WEBHOOK:*', 'webhook:create', false],
    [' *:*', 'webhook:create', false],
  ])('%j covers %j: %s', (pattern, permission, expected) => {
    expect(matchesPattern(pattern, permission)).toBe(expected)
  })

  test('a pattern without a star covers only itself', () => {
    const word = fc.stringMatching(/^[a-z][a-z-]{0,8}$/)
    const permission = fc.tuple(word, word).map(([resource, action]) => `${resource}:${action}`)
    fc.assert(
      fc.property(permission, permission, (granted, other) => {
        expect(matchesPattern(granted, other)).toBe(granted === other)
      }),
    )
  })
})

describe('the scope of a permission', () => {
  test('is all for a global pattern, even beside one for the own accounts', () => {
    const caller = buildCaller({ patterns: ['contract:find-one'], accountPatterns: ['contract:*'] })
    expect(findPermissionScope(caller, 'contract:find-one')).toBe('all')
    expect(findPermissionScope(caller, 'contract:update')).toEqual([mine])
    expect(findPermissionScope(caller, 'webhook:update')).toBeUndefined()
  })

  test('is the accounts whose membership holds the permission, and no other', () => {
    const membershipPatterns = [
      { account: mine, patterns: ['contract:*'] },
      { account: theirs, patterns: ['contract:find-one'] },
    ]
    const caller = buildCaller({ accounts: [mine, theirs], membershipPatterns })
    expect(findPermissionScope(caller, 'contract:update')).toEqual([mine])
    expect(findPermissionScope(caller, 'contract:find-one')).toEqual([mine, theirs])
    expect(findPermissionScope(caller, 'webhook:update')).toBeUndefined()
    const key = buildCaller({ accounts: [mine, theirs], membershipPatterns, ceiling: ['contract:find-one'] })
    expect(findPermissionScope(key, 'contract:update')).toBeUndefined()
    expect(findPermissionScope({ ...caller, accountPatterns: ['contract:*'] }, 'contract:update')).toEqual([
      mine,
      theirs,
    ])
  })

  test('is narrowed and never widened by an API key', () => {
    const narrowed = buildCaller({ patterns: ['webhook:*'], ceiling: ['webhook:find-all', 'user:*'] })
    expect(findPermissionScope(narrowed, 'webhook:find-all')).toBe('all')
    expect(findPermissionScope(narrowed, 'webhook:create')).toBeUndefined()
    expect(findPermissionScope(narrowed, 'user:create')).toBeUndefined()
    const empty = buildCaller({ patterns: ['*:*'], ceiling: [] })
    expect(findPermissionScope(empty, 'webhook:create')).toBeUndefined()
    const own = buildCaller({ accountPatterns: ['contract:*'], ceiling: ['*:*'] })
    expect(findPermissionScope(own, 'contract:update')).toEqual([mine])
  })

  test.each([
    ['all', [true, true, true]],
    [[mine], [true, false, false]],
    [[], [false, false, false]],
  ] as const)('%j covers the own account, another account and rows without an owner: %j', (scope, expected) => {
    expect([mine, theirs, null].map((account) => includesAccount(scope, account))).toEqual(expected)
  })
})

test.each<[PermissionScope, PermissionScope, boolean]>([
  ['all', 'all', true],
  ['all', [mine], true],
  [[mine], 'all', false],
  [[mine, theirs], [mine], true],
  [[mine], [mine, theirs], false],
  [[], [mine], false],
  [[mine], [], true],
])('the scope %j covers %j: %s', (scope, other, covers) => {
  expect(includesScope(scope, other)).toBe(covers)
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AccountId, UserId } from '../id.ts'
import { type Caller, canReachAccount, findReach, matchesPattern } from './caller.ts'

const mine = 'mine' as AccountId
const theirs = 'theirs' as AccountId

function buildCaller(changes: Partial<Caller>): Caller {
  return {
    userId: 'user' as UserId,
    sessionId: null,
    apiKeyId: null,
    accountId: null,
    patterns: [],
    accountPatterns: [],
    accounts: [mine],
    keyPatterns: null,
    ...changes,
  }
}

describe('patterns (D11)', () => {
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

  test('a pattern without a star covers itself and nothing else', () => {
    const word = fc.stringMatching(/^[a-z][a-z-]{0,8}$/)
    const permission = fc.tuple(word, word).map(([resource, action]) => `${resource}:${action}`)
    fc.assert(
      fc.property(permission, permission, (one, other) => {
        expect(matchesPattern(one, other)).toBe(one === other)
      }),
    )
  })
})

describe('reach (D11, D14)', () => {
  test('a permission that holds everywhere wins over one for the own accounts', () => {
    const caller = buildCaller({ patterns: ['contract:find-one'], accountPatterns: ['contract:*'] })
    expect(findReach(caller, 'contract:find-one')).toBe('everywhere')
    expect(findReach(caller, 'contract:update')).toBe('own accounts')
    expect(findReach(caller, 'webhook:update')).toBe('nowhere')
  })

  test('an API key narrows its owner and never widens', () => {
    const narrowed = buildCaller({ patterns: ['webhook:*'], keyPatterns: ['webhook:find-all', 'user:*'] })
    expect(findReach(narrowed, 'webhook:find-all')).toBe('everywhere')
    expect(findReach(narrowed, 'webhook:create')).toBe('nowhere')
    expect(findReach(narrowed, 'user:create')).toBe('nowhere')
    expect(findReach(buildCaller({ patterns: ['*:*'], keyPatterns: [] }), 'webhook:create')).toBe('nowhere')
    expect(findReach(buildCaller({ accountPatterns: ['contract:*'], keyPatterns: ['*:*'] }), 'contract:update')).toBe(
      'own accounts',
    )
  })

  test.each([
    ['everywhere', { patterns: ['contract:*'] }, [true, true, true]],
    ['own accounts', { accountPatterns: ['contract:*'] }, [true, false, false]],
    ['nowhere', {}, [false, false, false]],
  ] as const)('%s: the own account, another one, and what nobody owns', (_, changes, expected) => {
    const caller = buildCaller(changes)
    const reached = [mine, theirs, null].map((account) => canReachAccount(caller, 'contract:update', account))
    expect(reached).toEqual(expected)
  })
})

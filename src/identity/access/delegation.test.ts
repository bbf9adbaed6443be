import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AccountId, UserId } from '../../base/id.ts'
import { type Caller, findPermissionScope, includesAccount } from '../../http/shape/caller.ts'
import {
  bindHoldings,
  checkHoldsGrants,
  checkMayMakeKey,
  findMissingGrant,
  findUnheldKeyPattern,
  type Grant,
  type Holdings,
  holdsGrant,
  listGivenGrants,
  listGrants,
  listHeldPatterns,
  listMemberRoleGrants,
  listMembershipGrants,
  listRoleGrants,
  narrowHoldings,
} from './delegation.ts'

const RESOURCES = ['webhook', 'webhook-event', 'user']
const ACTIONS = ['create', 'find-all']
const PERMISSIONS = RESOURCES.flatMap((resource) => ACTIONS.map((action) => `${resource}:${action}`))
const PATTERNS = [...PERMISSIONS, ...RESOURCES.map((resource) => `${resource}:*`), '*:*']
const A = 'account-a' as AccountId
const B = 'account-b' as AccountId

/** A caller with these holdings; `ceiling` makes it an API key. */
function caller(holdings: Partial<Holdings> = {}, ceiling: readonly string[] | null = null): Caller {
  const token = { userId: 'someone' as UserId, sessionId: null, apiKeyId: null, clientId: null, accountId: null }
  const more = { ceiling, keyAccount: null, proof: null }
  return { ...token, patterns: [], accountPatterns: [], membershipPatterns: [], accounts: [], ...holdings, ...more }
}

/** Any holdings; a membership is of an account of the user. */
const someHoldings = fc.subarray([A, B]).chain((accounts) =>
  fc.record({
    patterns: fc.subarray(PATTERNS),
    accountPatterns: fc.subarray(PATTERNS),
    membershipPatterns: fc
      .subarray(accounts)
      .chain((some) =>
        fc.tuple(
          ...some.map((account) => fc.record({ account: fc.constant(account), patterns: fc.subarray(PATTERNS) })),
        ),
      ),
    accounts: fc.constant(accounts),
  }),
)
const someKey = fc.option(fc.subarray(PATTERNS), { nil: null })

const canReachAccount = (caller: Caller, permission: string, account: AccountId) =>
  includesAccount(findPermissionScope(caller, permission) ?? [], account)

describe('what a caller holds', () => {
  test.each<[string, Caller, Grant, boolean]>([
    [
      'a global pattern everywhere',
      caller({ patterns: ['webhook:*'] }),
      { pattern: 'webhook:create', place: 'everywhere' },
      true,
    ],
    ['a global pattern in any account', caller({ patterns: ['webhook:*'] }), { pattern: 'webhook:*', place: A }, true],
    [
      'no wider pattern than its own',
      caller({ patterns: ['webhook:create'] }),
      { pattern: 'webhook:*', place: A },
      false,
    ],
    [
      'no pattern of a resource of a similar name',
      caller({ patterns: ['webhook:*'] }),
      { pattern: 'webhook-event:create', place: A },
      false,
    ],
    [
      'an account pattern in its own account',
      caller({ accountPatterns: ['user:*'], accounts: [A] }),
      { pattern: 'user:create', place: A },
      true,
    ],
    [
      'no account pattern in another account',
      caller({ accountPatterns: ['user:*'], accounts: [A] }),
      { pattern: 'user:create', place: B },
      false,
    ],
    [
      'no account pattern everywhere',
      caller({ accountPatterns: ['*:*'], accounts: [A, B] }),
      { pattern: 'user:create', place: 'everywhere' },
      false,
    ],
    [
      'with a key no more than the key',
      caller({ patterns: ['*:*'] }, ['user:create']),
      { pattern: 'user:*', place: 'everywhere' },
      false,
    ],
    [
      'with a key what both the key and its owner hold',
      caller({ patterns: ['*:*'] }, ['user:*']),
      { pattern: 'user:create', place: B },
      true,
    ],
    [
      'with a key no more than its owner',
      caller({ patterns: ['user:create'] }, ['*:*']),
      { pattern: 'user:*', place: 'everywhere' },
      false,
    ],
    [
      'the patterns of a membership in its account',
      caller({ membershipPatterns: [{ account: A, patterns: ['user:*'] }] }),
      { pattern: 'user:create', place: A },
      true,
    ],
    [
      'no patterns of a membership in another account',
      caller({ membershipPatterns: [{ account: A, patterns: ['user:*'] }], accounts: [A, B] }),
      { pattern: 'user:create', place: B },
      false,
    ],
    [
      'no patterns of a membership everywhere',
      caller({ membershipPatterns: [{ account: A, patterns: ['*:*'] }] }),
      { pattern: 'user:create', place: 'everywhere' },
      false,
    ],
    ['nothing without roles', caller(), { pattern: 'user:create', place: A }, false],
  ])('is %s', (_name, held, grant, expected) => {
    expect(holdsGrant(held, grant)).toBe(expected)
  })

  test('is listed for one account: what reaches there, each once, and with a key no more than the key', () => {
    const holdings = {
      patterns: ['user:find-all'],
      accountPatterns: ['webhook:*', 'user:find-all'],
      membershipPatterns: [
        { account: A, patterns: ['webhook-event:create'] },
        { account: B, patterns: ['*:*'] },
      ],
      accounts: [A],
    }
    expect(listHeldPatterns(caller(holdings), A)).toEqual(['user:find-all', 'webhook:*', 'webhook-event:create'])
    expect(listHeldPatterns(caller(holdings), B)).toEqual(['user:find-all', '*:*'])
    expect(listHeldPatterns(caller(holdings, ['webhook:create', 'user:*']), A)).toEqual([
      'webhook:create',
      'user:find-all',
    ])
  })
})

describe('what is given or taken', () => {
  test('a user holds global patterns everywhere and account patterns in each own account', () => {
    const membershipPatterns = [{ account: B, patterns: ['contract:*'] }]
    const holdings = { patterns: ['user:*'], accountPatterns: ['webhook:*'], membershipPatterns, accounts: [A, B] }
    expect(listGrants(holdings)).toEqual([
      { pattern: 'user:*', place: 'everywhere' },
      { pattern: 'webhook:*', place: A },
      { pattern: 'webhook:*', place: B },
      { pattern: 'contract:*', place: B },
    ])
  })

  test('the grants of a created, changed or deleted role count everywhere', () => {
    for (const isAccountScoped of [true, false])
      expect(listRoleGrants({ patterns: ['user:*'], isAccountScoped })).toEqual([
        { pattern: 'user:*', place: 'everywhere' },
      ])
  })

  test('an assigned account role counts in the accounts of the user, and everywhere for a user without accounts', () => {
    const role = { patterns: ['user:*'], isAccountScoped: true }
    expect(listGivenGrants(role, [A, B]).map(({ place }) => place)).toEqual([A, B])
    expect(listGivenGrants(role, []).map(({ place }) => place)).toEqual(['everywhere'])
    expect(listGivenGrants({ ...role, isAccountScoped: false }, [A]).map(({ place }) => place)).toEqual(['everywhere'])
  })

  test('a membership gives the account patterns of the user and those of its own roles, in that account only', () => {
    const membershipPatterns = [
      { account: A, patterns: ['contract:*'] },
      { account: B, patterns: ['webhook:*'] },
    ]
    expect(listMembershipGrants({ accountPatterns: ['user:*'], membershipPatterns }, B)).toEqual([
      { pattern: 'user:*', place: B },
      { pattern: 'webhook:*', place: B },
    ])
    expect(listMemberRoleGrants({ patterns: ['contract:*'] }, A)).toEqual([{ pattern: 'contract:*', place: A }])
  })

  test('a key holds the narrower of each two patterns that overlap', () => {
    const membershipPatterns = [{ account: A, patterns: ['user:*'] }]
    const holdings = {
      patterns: ['webhook:*', 'user:create'],
      accountPatterns: ['*:*'],
      membershipPatterns,
      accounts: [A],
    }
    expect(narrowHoldings(holdings, ['webhook:create', 'user:*'])).toEqual({
      patterns: ['webhook:create', 'user:create'],
      accountPatterns: ['webhook:create', 'user:*'],
      membershipPatterns: [{ account: A, patterns: ['user:*'] }],
      accounts: [A],
    })
  })
})

describe('the rule', () => {
  test('a caller that holds all grants of another may do everything that the other may, at every place', () => {
    fc.assert(
      fc.property(someHoldings, someKey, someHoldings, (own, ceiling, others) => {
        const giver = caller(own, ceiling)
        const taken = caller(others)
        if (findMissingGrant(giver, listGrants(others)) !== undefined) return
        for (const permission of PERMISSIONS) {
          if (findPermissionScope(taken, permission) === 'all')
            expect(findPermissionScope(giver, permission)).toBe('all')
          for (const account of [A, B])
            if (canReachAccount(taken, permission, account))
              expect(canReachAccount(giver, permission, account)).toBe(true)
        }
      }),
      { numRuns: 3000 },
    )
  })

  test('a caller with a session holds all grants of its user', () => {
    fc.assert(
      fc.property(someHoldings, (own) => {
        expect(findMissingGrant(caller(own), listGrants(own))).toBeUndefined()
      }),
    )
  })

  test('a key holds all of its narrowed grants', () => {
    fc.assert(
      fc.property(someHoldings, fc.subarray(PATTERNS), (own, ceiling) => {
        const narrowed = narrowHoldings(own, ceiling)
        expect(findMissingGrant(caller(own, ceiling), listGrants(narrowed))).toBeUndefined()
        const [asKey, asNarrowed] = [caller(own, ceiling), caller(narrowed)]
        for (const permission of PERMISSIONS)
          for (const account of [A, B])
            expect(canReachAccount(asNarrowed, permission, account)).toBe(canReachAccount(asKey, permission, account))
      }),
      { numRuns: 1000 },
    )
  })

  test('a key that may be created reaches no further than its creator at any place', () => {
    fc.assert(
      fc.property(someHoldings, someKey, fc.subarray(PATTERNS), (own, ceiling, made) => {
        const maker = caller(own, ceiling)
        if (findUnheldKeyPattern(maker, made) !== undefined) return
        const key = caller(own, made)
        for (const permission of PERMISSIONS)
          for (const account of [A, B])
            if (canReachAccount(key, permission, account))
              expect(canReachAccount(maker, permission, account)).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  test('a key that is bound to an account holds nothing there when its user does not', () => {
    const elsewhere = { accountPatterns: ['webhook:*'], membershipPatterns: [{ account: B, patterns: ['user:*'] }] }
    const nothing = { patterns: [], accountPatterns: [], membershipPatterns: [], accounts: [] }
    expect(bindHoldings({ ...elsewhere, patterns: [], accounts: [B] }, A)).toEqual(nothing)
  })

  test('a refusal names the first missing pattern and the place', () => {
    const grants: Grant[] = [
      { pattern: 'user:create', place: 'everywhere' },
      { pattern: 'webhook:*', place: B },
      { pattern: '*:*', place: 'everywhere' },
    ]
    const held = caller({ patterns: ['user:*'] })
    expect(() => checkHoldsGrants(held, grants, 'do this')).toThrow(
      expect.objectContaining({
        code: 'permission_denied',
        detail: 'You cannot do this: this needs webhook:* in the account account-b, which your token does not hold.',
      }),
    )
    expect(() => checkHoldsGrants(held, grants.slice(2), 'do this')).toThrow(/\*:\* everywhere/)
    expect(() => checkMayMakeKey(held, ['user:create', 'webhook:create'], null)).toThrow(/webhook:create/)
  })
})

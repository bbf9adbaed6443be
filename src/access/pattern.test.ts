import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Caller } from '../http/caller.ts'
import { findPermissionScope } from '../http/caller.ts'
import type { UserId } from '../id.ts'
import { coversPattern, findUnheldPattern, isKnownPattern, PATTERN_PATTERN } from './pattern.ts'

const RESOURCES = ['webhook', 'webhook-event', 'user']
const ACTIONS = ['create', 'find-all']
const PERMISSIONS = RESOURCES.flatMap((resource) => ACTIONS.map((action) => `${resource}:${action}`))
const PATTERNS = [...PERMISSIONS, ...RESOURCES.map((resource) => `${resource}:*`), '*:*']

function caller(patterns: readonly string[], keyPatterns: readonly string[] | null = null): Caller {
  const nobody = { sessionId: null, apiKeyId: null, accountId: null, accountPatterns: [], accounts: [] }
  return { userId: 'someone' as UserId, ...nobody, patterns, keyPatterns }
}

describe('patterns', () => {
  test.each(['webhook:create', 'webhook:*', '*:*', 'webhook-dispatch:find-all', 'a1:b2'])('%s is one', (text) => {
    expect(new RegExp(PATTERN_PATTERN).test(text)).toBe(true)
  })

  test.each([
    '',
    '*',
    ':',
    '*:create',
    'webhook',
    'webhook:',
    ':create',
    'Webhook:create',
    'webhook:create:x',
    'webhook :*',
    'a:**',
  ])('"%s" is none', (text) => {
    expect(new RegExp(PATTERN_PATTERN).test(text)).toBe(false)
  })

  test('are known when they are about something that exists', () => {
    expect(PATTERNS.every((pattern) => isKnownPattern(pattern, PERMISSIONS))).toBe(true)
    expect(['webhook:fly', 'dragon:*', 'web:*', 'webhook-:*'].some((one) => isKnownPattern(one, PERMISSIONS))).toBe(
      false,
    )
  })

  test('a resource whose name begins like another is another', () => {
    expect(coversPattern('webhook:*', 'webhook-event:create')).toBe(false)
    expect(coversPattern('webhook:create', 'webhook:*')).toBe(false)
    expect(coversPattern('webhook:*', '*:*')).toBe(false)
  })

  test('what is held covers what is given exactly when whoever gets it can do nothing new', () => {
    const some = fc.subarray(PATTERNS)
    fc.assert(
      fc.property(some, fc.option(some, { nil: null }), some, (held, keyPatterns, given) => {
        const giver = caller(held, keyPatterns)
        if (findUnheldPattern(giver, given) !== undefined) return
        for (const permission of PERMISSIONS)
          if (findPermissionScope(caller(given), permission) === 'all')
            expect(findPermissionScope(giver, permission)).toBe('all')
      }),
      { numRuns: 2000 },
    )
  })

  test('who holds everything may give everything', () => {
    expect(findUnheldPattern(caller(['*:*']), PATTERNS)).toBeUndefined()
    expect(findUnheldPattern(caller(['*:*'], ['webhook:*']), ['webhook:create', 'user:*'])).toBe('user:*')
  })
})

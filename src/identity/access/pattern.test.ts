import { describe, expect, test } from 'vitest'
import {
  checkPatternsHaveEffect,
  checkPatternsKnown,
  coversPattern,
  isKnownPattern,
  PATTERN_PATTERN,
} from './pattern.ts'

const RESOURCES = ['webhook', 'webhook-event', 'user']
const ACTIONS = ['create', 'find-all']
const PERMISSIONS = RESOURCES.flatMap((resource) => ACTIONS.map((action) => `${resource}:${action}`))
const PATTERNS = [...PERMISSIONS, ...RESOURCES.map((resource) => `${resource}:*`), '*:*']

describe('patterns', () => {
  test.each(['webhook:create', 'webhook:*', '*:*', 'webhook-dispatch:find-all', 'a1:b2'])('%s is valid', (text) => {
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

  test('are known when they match a known permission', () => {
    expect(PATTERNS.every((pattern) => isKnownPattern(pattern, PERMISSIONS))).toBe(true)
    expect(['webhook:fly', 'dragon:*', 'web:*', 'webhook-:*'].some((text) => isKnownPattern(text, PERMISSIONS))).toBe(
      false,
    )
  })

  test('a resource is not matched by a prefix of its name', () => {
    expect(coversPattern('webhook:*', 'webhook-event:create')).toBe(false)
    expect(coversPattern('webhook:create', 'webhook:*')).toBe(false)
    expect(coversPattern('webhook:*', '*:*')).toBe(false)
  })

  test('are refused where one is unknown, or has no effect in an account, with its index', () => {
    const [known, unknown] = [
      ['user:create', 'webhook:*'],
      ['user:create', 'webhook:fly'],
    ]
    const refused = (path: string, code: string) =>
      expect.objectContaining({ errors: [expect.objectContaining({ path, code })] })
    expect(() => checkPatternsKnown(known, PERMISSIONS)).not.toThrow()
    expect(() => checkPatternsKnown(unknown, PERMISSIONS)).toThrow(refused('permissions.1', 'unknown_permission'))
    expect(() => checkPatternsHaveEffect(known, PERMISSIONS, 'A role')).not.toThrow()
    expect(() => checkPatternsHaveEffect(known, ['user:create'], 'A role')).toThrow(
      refused('permissions.1', 'no_effect_in_scope'),
    )
  })
})

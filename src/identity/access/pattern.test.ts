import { describe, expect, test } from 'vitest'
import { coversPattern, isKnownPattern, PATTERN_PATTERN } from './pattern.ts'

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
})

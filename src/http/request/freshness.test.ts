import { describe, expect, test } from 'vitest'
import { buildNotFresh, isFresh } from './freshness.ts'

const NOW = new Date('2026-03-01T12:00:00.000Z')
const TEN_MINUTES = 600_000

function proofOf(ageMs: number, { hasFactor = true, isMultiFactor = true } = {}) {
  return { proof: { hasFactor, isMultiFactor, provenAt: new Date(NOW.getTime() - ageMs) } }
}

describe('a user with a second factor', () => {
  test.each(['factor', 'sign-in'] as const)('is fresh for %s up to 10 minutes after the proof', (wanted) => {
    expect(isFresh(proofOf(TEN_MINUTES), wanted, NOW)).toBe(true)
    expect(isFresh(proofOf(TEN_MINUTES + 1), wanted, NOW)).toBe(false)
  })

  test('is not fresh in a session without a second factor, however new', () => {
    expect(isFresh(proofOf(0, { isMultiFactor: false }), 'factor', NOW)).toBe(false)
    expect(isFresh(proofOf(0, { isMultiFactor: false }), 'sign-in', NOW)).toBe(false)
  })
})

describe('a user without a second factor', () => {
  test('passes what asks for a factor', () => {
    expect(isFresh(proofOf(90 * 86_400_000, { hasFactor: false }), 'factor', NOW)).toBe(true)
  })

  test('has to sign in again for what asks for a sign-in', () => {
    expect(isFresh(proofOf(TEN_MINUTES, { hasFactor: false, isMultiFactor: false }), 'sign-in', NOW)).toBe(true)
    expect(isFresh(proofOf(TEN_MINUTES + 1, { hasFactor: false, isMultiFactor: true }), 'sign-in', NOW)).toBe(false)
  })
})

test('an API key is fresh', () => {
  expect(isFresh({ proof: null }, 'sign-in', NOW)).toBe(true)
})

test('the refusal names what the user can do', () => {
  expect(buildNotFresh(proofOf(0)).detail).toContain('/api/v3/auth/session/step-up')
  expect(buildNotFresh(proofOf(0, { hasFactor: false })).detail).toContain('Sign in again')
})

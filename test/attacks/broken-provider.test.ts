import { afterEach, describe, expect, test } from 'vitest'
import { openForFile } from '../harness/run/open-for-file.ts'
import { startAttackFixture } from './attack-fixture.ts'
import { AUTHORIZATION_ATTACKS } from './authorization-attacks.ts'
import { TOKEN_ATTACKS } from './token-attacks.ts'
import { PERSON_ATTACKS } from './user-attacks.ts'

/**
 * Each attack of RFC 9700's list fails on the provider, and succeeds on one that is broken in the one way that it names: so
 * no attack fails for another reason than the protection that it tests.
 */
const ATTACKS = [...AUTHORIZATION_ATTACKS, ...TOKEN_ATTACKS, ...PERSON_ATTACKS]

const fixture = await openForFile(startAttackFixture())
afterEach(() => {
  fixture.state.on = undefined
})

test('at least 70 attacks are named, each once', () => {
  expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length)
  expect(ATTACKS.length).toBeGreaterThanOrEqual(70)
})

describe('an attack fails here, and succeeds on a provider that is broken in one way', () => {
  test.each(ATTACKS)('$name, when $brokenBy', async ({ attack, brokenBy }) => {
    expect(await attack(fixture)).toBe(false)
    fixture.state.on = brokenBy
    expect(await attack(fixture)).toBe(true)
  })
})

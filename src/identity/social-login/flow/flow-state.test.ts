import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildKeyring } from '../../../base/keyring.ts'
import { systemRandom } from '../../../base/random.ts'
import { FLOW_LIFETIME_MS, issueState, readState } from './flow-state.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const keyring = buildKeyring(['a secret of at least 32 bytes for tests'], systemRandom)
const deps = { keyring, random: systemRandom }

describe('a state', () => {
  test('is read back for its provider until it expires', () => {
    const { state, hash, expiresAt } = issueState(deps, 'google', NOW)
    expect(expiresAt.getTime() - NOW.getTime()).toBe(FLOW_LIFETIME_MS)
    expect(readState(keyring, state, { provider: 'google', now: NOW })).toEqual({ hash, isExpired: false })
    expect(readState(keyring, state, { provider: 'google', now: expiresAt })).toEqual({ hash, isExpired: true })
  })

  test('is forged for every other provider', () => {
    const { state } = issueState(deps, 'google', NOW)
    fc.assert(
      fc.property(fc.string(), (provider) => {
        fc.pre(provider !== 'google')
        expect(readState(keyring, state, { provider, now: NOW })).toEqual({ reason: 'state_forged' })
      }),
    )
  })

  test('is no text that was not issued', () => {
    const characters = fc.constantFrom(...'ABCabc019_-.\u0000 %é')
    const lookalikes = fc
      .tuple(fc.string({ minLength: 43, maxLength: 43, unit: fc.constantFrom(...'Aa0_-') }), fc.nat())
      .map(([text, seconds]) => `${text}.${seconds.toString(36)}.${text}`)
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: characters, maxLength: 120 }), lookalikes), (text) => {
        expect(readState(keyring, text, { provider: 'google', now: NOW })).toHaveProperty('reason')
      }),
      { numRuns: 2_000 },
    )
  })

  test('does not survive a change of any of its characters', () => {
    const { state } = issueState(deps, 'google', NOW)
    const genuine = readState(keyring, state, { provider: 'google', now: NOW })
    for (let at = 0; at < state.length; at += 1) {
      const changed = `${state.slice(0, at)}${state[at] === 'A' ? 'B' : 'A'}${state.slice(at + 1)}`
      expect(readState(keyring, changed, { provider: 'google', now: NOW }), `character ${at}`).not.toEqual(genuine)
    }
  })

  test('of a secret that is no longer listed is forged, of an older listed one is genuine', () => {
    const { state } = issueState(deps, 'google', NOW)
    const rotated = (secrets: string[]) =>
      readState(buildKeyring(secrets, systemRandom), state, { provider: 'google', now: NOW })
    expect(rotated(['another secret of at least 32 bytes', 'a secret of at least 32 bytes for tests'])).toHaveProperty(
      'hash',
    )
    expect(rotated(['another secret of at least 32 bytes'])).toEqual({ reason: 'state_forged' })
  })
})

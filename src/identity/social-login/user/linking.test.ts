import { describe, expect, test } from 'vitest'
import type { UserId } from '../../../base/id.ts'
import type { ProviderIdentity } from '../../engine/engine.ts'
import { decideLinking, type KnownUser } from './linking.ts'

const ME = 'me' as UserId
const OTHER = 'other' as UserId

const identity = (changes: Partial<ProviderIdentity> = {}): ProviderIdentity => ({
  provider: 'google',
  subject: '1',
  email: 'ada@example.com',
  isEmailVerified: true,
  name: null,
  avatarUrl: null,
  ...changes,
})
const owner = (changes: Partial<NonNullable<KnownUser['owner']>> = {}) => ({
  userId: OTHER,
  isActived: true,
  isEmailVerified: true,
  ...changes,
})
const nobody: KnownUser = { linked: undefined, owner: undefined }

describe('the linking rule', () => {
  test.each<[string, ProviderIdentity, KnownUser, object]>([
    [
      'signs in a known identity',
      identity(),
      { ...nobody, linked: { userId: ME, isActived: true } },
      { kind: 'sign-in', userId: ME },
    ],
    [
      'signs in a known identity whatever its address is',
      identity({ email: null, isEmailVerified: false }),
      { ...nobody, linked: { userId: ME, isActived: true } },
      { kind: 'sign-in', userId: ME },
    ],
    [
      'never moves a known identity to the owner of its address',
      identity(),
      { linked: { userId: ME, isActived: true }, owner: owner() },
      { kind: 'sign-in', userId: ME },
    ],
    [
      'refuses a known identity of a disabled user',
      identity(),
      { linked: { userId: ME, isActived: false }, owner: owner() },
      { kind: 'refuse', reason: 'disabled', userId: ME },
    ],
    ['registers an address that nobody has', identity(), nobody, { kind: 'register', email: 'ada@example.com' }],
    ['links when both sides have verified', identity(), { ...nobody, owner: owner() }, { kind: 'link', userId: OTHER }],
    [
      'refuses an owner who has not verified the address',
      identity(),
      { ...nobody, owner: owner({ isEmailVerified: false }) },
      { kind: 'refuse', reason: 'owner_unverified', userId: OTHER },
    ],
    [
      'refuses a disabled owner',
      identity(),
      { ...nobody, owner: owner({ isActived: false }) },
      { kind: 'refuse', reason: 'disabled', userId: OTHER },
    ],
    [
      'refuses an address that the provider has not verified, whoever owns it',
      identity({ isEmailVerified: false }),
      { ...nobody, owner: owner() },
      { kind: 'refuse', reason: 'email_unverified', userId: null },
    ],
    [
      'refuses an unverified address that nobody has',
      identity({ isEmailVerified: false }),
      nobody,
      { kind: 'refuse', reason: 'email_unverified', userId: null },
    ],
    [
      'refuses a missing address',
      identity({ email: null }),
      nobody,
      { kind: 'refuse', reason: 'email_missing', userId: null },
    ],
  ])('%s', (_, identity, known, decision) => {
    expect(decideLinking(identity, known)).toEqual(decision)
  })
})

import { expect, test } from 'vitest'
import { readSupabaseIdentity } from './supabase-identity.ts'

const origin = { provider: 'google', isEmailTrusted: true, isProviderKnown: true }
const avatarOf = (data: object) => {
  const identity = { provider: 'google', identity_data: { sub: 'person-1', ...data } }
  return readSupabaseIdentity({ id: 'user-1', identities: [identity] }, origin)
}

test('the picture of a user is avatar_url, or picture of a provider that has no avatar_url', () => {
  const [avatar, picture] = ['https://images.example/avatar.png', 'https://images.example/picture.png']
  expect(avatarOf({ avatar_url: avatar, picture })).toMatchObject({ avatarUrl: avatar })
  expect(avatarOf({ picture })).toMatchObject({ avatarUrl: picture })
  expect(avatarOf({})).toMatchObject({ subject: 'person-1', avatarUrl: null })
})

test('of several verified identities at the provider the one that was used last counts, by either of its times', () => {
  const identity = (sub: string, updated_at: string | null, last_sign_in_at: string | null) => ({
    ...{ provider: 'google', updated_at, last_sign_in_at, identity_data: { sub, email_verified: true } },
  })
  const subjectOf = (...identities: object[]) => readSupabaseIdentity({ id: 'user-1', identities }, origin)
  const used = identity('updated', '2026-01-05T00:00:00Z', '2026-01-01T00:00:00Z')
  const signedIn = identity('signed in', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z')
  for (const identities of [
    [used, signedIn],
    [signedIn, used],
    [identity('unused', null, null), used],
  ])
    expect(subjectOf(...identities)).toMatchObject({ subject: 'updated' })
  expect(subjectOf(signedIn, identity('earlier', null, '2026-01-02T00:00:00Z'))).toMatchObject({ subject: 'signed in' })
})

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

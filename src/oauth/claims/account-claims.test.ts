import { expect, test } from 'vitest'
import type { UserId } from '../../base/id.ts'
import { toProviderAccount } from './account-claims.ts'
import type { UserClaims } from './user-claims.store.ts'

const user = {
  ...{
    id: 'u-1' as UserId,
    email: 'ada@b.test',
    isEmailVerified: true,
    name: 'Ada',
    avatarUrl: 'https://b.test/a.png',
  },
  ...{ updatedAt: new Date(1_999), firstAccount: null },
} as unknown as UserClaims
const always = { sub: 'u-1', email: 'ada@b.test', email_verified: true, updated_at: 1 }
const read = (of: UserClaims, use: string, asked: object = {}) =>
  toProviderAccount(of).claims(use, '', asked as never, [])

test('userinfo has all that is known of a user, and nothing for what is not', async () => {
  expect(await read(user, 'userinfo')).toStrictEqual({ ...always, name: 'Ada', picture: 'https://b.test/a.png' })
  expect(await read({ ...user, name: null, avatarUrl: null }, 'userinfo')).toStrictEqual(always)
})

test('an ID token has the subject, and what was asked for by name', async () => {
  expect(await read(user, 'id_token')).toStrictEqual({ sub: 'u-1' })
  expect(await read(user, 'id_token', { email: null, phone: null })).toStrictEqual({ sub: 'u-1', email: 'ada@b.test' })
})

test('the tokens of a user have it as their subject, with its first account', () => {
  expect(toProviderAccount(user)).toMatchObject({
    ...{ accountId: 'u-1', subject: { userId: 'u-1', isActive: true, accountId: null } },
  })
})

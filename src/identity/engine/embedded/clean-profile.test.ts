import { expect, test } from 'vitest'
import { cleanName, cleanProfile } from './clean-profile.ts'
import type { ReadProfile } from './provider/provider-declaration.ts'

test.each([
  ['Ada Lovelace', 'Ada Lovelace'],
  [' Ada\nLovelace\u2028', 'Ada Lovelace'],
  ['👩'.repeat(201), '👩'.repeat(200)],
  [' \u0000\n', null],
  ['Support\u202e\u200bdA', 'Support dA'],
  ['\u200b\u00ad', null],
  [`${'a'.repeat(199)} \u202eb`, 'a'.repeat(199)],
  ['', null],
  [7, null],
  [undefined, null],
])('the name %j becomes %j', (given, name) => {
  expect(cleanName(given)).toBe(name)
})

const PROFILE = { subject: '1', email: 'ada@b.test', isEmailVerified: true, name: 'Ada', avatarUrl: 'https://a.test/a' }
const clean = (more: object = {}, isEmailTrusted = true) =>
  cleanProfile('google', { ...PROFILE, ...more } as ReadProfile, isEmailTrusted)

test('a profile has its subject, of 255 characters at most, or there is none', () => {
  expect(clean()).toEqual({ provider: 'google', ...PROFILE })
  expect(clean({ subject: 'a'.repeat(255) })?.subject).toHaveLength(255)
  for (const subject of ['', 'a'.repeat(256), 'a\u0007', '\u0000', 7, null, undefined])
    expect(clean({ subject }), JSON.stringify(subject)).toBeUndefined()
})

test('an address is verified where the provider says so and is trusted, and none where it is malformed', () => {
  expect(clean({ isEmailVerified: false })?.isEmailVerified).toBe(false)
  expect(clean({}, false)).toMatchObject({ email: 'ada@b.test', isEmailVerified: false })
  for (const email of ['ada', '', 7, null])
    expect(clean({ email })).toMatchObject({ email: null, isEmailVerified: false })
})

test('a picture has an address of https without a user, of 2048 characters at most', () => {
  const longest = `https://a.test/${'a'.repeat(2033)}`
  expect(clean({ avatarUrl: longest })?.avatarUrl).toBe(longest)
  for (const avatarUrl of [`${longest}a`, 'http://a.test/', 'https://me@a.test/', 'a', 7, null])
    expect(clean({ avatarUrl })?.avatarUrl).toBeNull()
})

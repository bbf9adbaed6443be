import { dictionary } from '@zxcvbn-ts/language-common'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { measureThread } from '../../../test/harness/run/linear.ts'
import { isCommonPassword } from './common-password.ts'
import { findPasswordFault } from './password-rule.ts'

const owner = { email: 'jane.doe@acme.example', name: 'Jane Doe-Smith' }
const codeOf = (password: string) => findPasswordFault(password, owner)?.code

describe('the length of a password', () => {
  test('is 8 to 256 characters, by code points after normalization', () => {
    const phrase = 'Zq7 vulture tram '.repeat(16)
    expect(codeOf('k3Vd9qT')).toBe('too_short')
    expect(codeOf('k3Vd9qTw')).toBeUndefined()
    expect(codeOf(phrase.slice(0, 256))).toBeUndefined()
    expect(codeOf(phrase.slice(0, 257))).toBe('too_long')
    expect(codeOf('🐴🚲🌵⚓🎻🧭🪁')).toBe('too_short')
    expect(codeOf('🐴🚲🌵⚓🎻🧭🪁🧲')).toBeUndefined()
    // Four ligatures are eight letters under NFKC, and a letter with its accent is one.
    expect(codeOf('ﬁﬂﬀﬃ')).toBeUndefined()
    expect(codeOf('zue\u0301kqv')).toBe('too_short')
  })
})

describe('a common password', () => {
  test('is each of 8 or more characters of the published list of leaked ones', () => {
    const long = dictionary['passwords-common'].filter((password) => password.length >= 8)
    expect(long.length).toBeGreaterThan(15_000)
    expect(long.filter((password) => codeOf(password) !== 'common')).toEqual([])
  })

  test.each([
    'password',
    'Password',
    'PASSWORD1',
    'password123!',
    'p@ssw0rd',
    'P@$$w0rd2024',
    'pa$$word',
    '1password1',
    'ｐａｓｓｗｏｒｄ',
    'passwordpassword',
    'iloveyou',
    'i love you',
    'iloveyou2',
    'letmein2023',
    'welcome1',
    'Welcome2024!',
    'football1',
    'monkey123',
    'dragon99',
    'Summer2025!',
    'qwertyuiop',
    'qwerty123',
    '1qaz2wsx',
    'zaq12wsx',
    'q1w2e3r4',
    'asdfghjkl',
    '12345678',
    '123456789012',
    '987654321',
    '11111111',
    'aaaaaaaaaaaa',
    'abcabcabc',
    '12121212',
    'abcdefgh',
    'abcd1234',
    '1234abcd',
    'qwer1234',
    '19840229',
    '29.02.1984',
    '1984-02-29',
    'trustno1',
    'changeme!',
    'administrator',
    'michael1985',
    'passwort123',
    'йцукенгш',
    'maverick',
    'Midnight1985',
    '4815162342',
    'drowssap',
    'fghtrejkl',
    'fgh7trejkl',
    'mmm777ppp',
    'wxcvyxcv',
    'zq7kzq7k',
    'password1234password1234',
    '12wintertim3',
    '(appuccin0',
    'monkey7391',
    'monkey!?;:,#+?',
    'gizmo7391',
    'greenlight7391',
    'chelsea19840229',
    'dragondragon12',
  ])('is refused: %s', (password) => {
    expect(codeOf(password)).toBe('common')
  })

  test.each([
    'correct horse battery staple',
    'correct horse',
    'now it is mine',
    'my password is long',
    'dragon eats tram',
    'Tr0ub4dor&3',
    'k3Vd9qTwPz',
    'zebra violin tax',
    'passwords are like underwear',
    'football under the bridge',
    '839472105562',
    'mäuse fangen käse',
    '密码学很有意思真的',
    'abcdefg tram',
    'fgh7tre9',
    'fghqwjkl',
    'monkey73917',
    '73917monkey',
    'monkey!?;:,#+?;',
    'moon7391',
    '(3|7!($#',
    'dragonqzxkvw',
    'zqkvwpzqkvwp',
  ])('is not one: %s', (password) => {
    expect(isCommonPassword(password.normalize('NFKC'))).toBe(false)
    expect(codeOf(password)).toBeUndefined()
  })

  test('is found in linear time, for hostile input of any length', () => {
    for (const unit of ['a', '1', 'ab', '1qaz', 'password', '$', 'é', '0'])
      for (const end of ['', 'x', '!', 'я']) {
        const password = unit.repeat(1024).slice(0, 1023) + end
        expect(measureThread(() => void isCommonPassword(password))).toBeLessThan(1_000)
      }
  })

  test('is never found by an error, and a random one of 16 characters is none', () => {
    fc.assert(fc.property(fc.string({ unit: anyCharacter, maxLength: 40 }), (text) => typeof codeOf(text) !== 'number'))
    const letters = fc.constantFrom(...'bdfgkpvwxzKPVWXZ2469')
    fc.assert(
      fc.property(fc.array(letters, { minLength: 16, maxLength: 16 }), (chosen) => {
        fc.pre(new Set(chosen).size > 6)
        expect(isCommonPassword(chosen.join(''))).toBe(false)
      }),
    )
  })
})

describe('a personal password', () => {
  test.each([
    'jane.doe@acme.example',
    'janedoe1985',
    'JaneDoe!!',
    'doe-smith-7',
    'acmeacme2024',
    'signalbox',
    'Signalbox2024!',
    'my signalbox',
    'ＪａｎｅＤｏｅ77',
  ])('is refused: %s', (password) => {
    expect(codeOf(password)).toBe('personal')
  })

  test.each(['jane rides a tall tram', 'signalbox at the river bend', 'doe48104810'])('is not one: %s', (password) => {
    expect(codeOf(password)).toBeUndefined()
  })

  test('is one of its owner only', () => {
    expect(findPasswordFault('janedoe1985', { email: 'max@other.example', name: null })).toBeUndefined()
    expect(findPasswordFault('max.other85', { email: 'max@other.example', name: null })?.code).toBe('personal')
  })
})

import { describe, expect, test } from 'vitest'
import { ENGLISH, LANGUAGES } from '../../../base/language/texts.ts'
import { listProviderButtons, nameProvider, renderProviderIcon, titleProvider } from './provider-button.ts'

describe('the sign of a provider', () => {
  test.each(['apple', 'discord', 'facebook', 'github', 'gitlab', 'google', 'microsoft'])(
    '%s is its own mark',
    (name) => {
      const { text } = renderProviderIcon(name, name)
      expect(text).toMatch(
        /^<svg class="provider[ a-z]*" viewBox="0 0 2[14] 2[14]" aria-hidden="true" focusable="false">.*<\/svg>$/,
      )
      // The policy of pages allows no inline style.
      expect(text).not.toContain('style=')
    },
  )

  test('of Google has its four colours', () => {
    const { text } = renderProviderIcon('google', 'Google')
    expect(text.match(/fill="#[0-9a-f]{6}"/g)).toHaveLength(4)
  })

  test('of Microsoft has its four colours, and that of Facebook a white letter', () => {
    expect(renderProviderIcon('microsoft', 'Microsoft').text.match(/fill="#[0-9a-f]{6}"/g)).toHaveLength(4)
    expect(renderProviderIcon('facebook', 'Facebook').text).toContain('fill="#fff"')
  })

  test('of the sample users is a person, and of no other provider', () => {
    const { text } = renderProviderIcon('dev', 'Sample users')
    expect(text).toMatch(/^<svg class="glyph" .*<circle .*<\/svg>$/)
    expect(renderProviderIcon('device', 'Device').text).not.toContain('<svg')
  })

  test.each([
    ['linkedin', 'LinkedIn', 'L'],
    ['company', 'Ünited Company', 'Ü'],
    ['constructor', 'constructor', 'C'],
    ['x', '<b>', '&lt;'],
  ])('without a mark is the first letter: %s', (name, label, letter) => {
    expect(renderProviderIcon(name, label).text).toBe(`<span class="initial" aria-hidden="true">${letter}</span>`)
  })
})

test.each([
  ['company', 'Company', 'Company', 'Company'],
  ['dev', 'Sample users', 'a sample user', 'A sample user'],
])('the provider %s has a name in a sentence and one in a list', (name, label, inSentence, inList) => {
  expect(nameProvider(ENGLISH, { name, label })).toBe(inSentence)
  expect(titleProvider(ENGLISH, { name, label })).toBe(inList)
})

describe('the buttons of providers', () => {
  const NAMES = ['apple', 'github', 'google', 'linkedin', 'microsoft', 'company']
  const engine = { listProviders: () => NAMES.map((name) => ({ name, label: `<${name}>`, leavesToken: false })) }
  const list = (lang: string) => {
    const texts = LANGUAGES.find((language) => language.lang === lang)!
    return listProviderButtons(engine, { redirectUrl: undefined, next: undefined, baseUrl: 'https://a.test', texts })
  }

  test.each([
    ['en', 'Continue with <google>', 'Sign in with <microsoft>'],
    ['de', 'Weiter mit <google>', 'Mit <microsoft> anmelden'],
  ])('have the words that their guidelines take: %s', (lang, google, microsoft) => {
    expect(list(lang).map(({ text }) => text)).toEqual([
      google.replace('google', 'apple'),
      google.replace('google', 'github'),
      google,
      microsoft.replace('microsoft', 'linkedin'),
      microsoft,
      google.replace('google', 'company'),
    ])
  })

  test('have the colours of their guidelines, where these name some', () => {
    const looks = list('en').map(({ look }) => look)
    expect(looks).toEqual(['apple', undefined, 'google', undefined, 'microsoft', undefined])
  })
})

test('where a decision at a managed engine follows, only the providers that leave a token are offered', () => {
  const engine = {
    listProviders: () => [
      { name: 'github', label: 'GitHub', leavesToken: false },
      { name: 'google', label: 'Google', leavesToken: true },
    ],
  } as unknown as Parameters<typeof listProviderButtons>[0]
  const offer = (isForDecision?: boolean) =>
    listProviderButtons(engine, {
      ...{ texts: ENGLISH, baseUrl: 'https://id.test', next: '/auth/oauth/engine', redirectUrl: undefined },
      ...(isForDecision !== undefined && { isForDecision }),
    }).map(({ href }) => href)
  const redirect = `redirect_url=${encodeURIComponent('https://id.test/auth/oauth/engine')}`
  const [github, google] = ['github', 'google'].map((name) => `/api/v3/auth/login/oauth/${name}?${redirect}`)
  expect([offer(), offer(false), offer(true)]).toEqual([[github, google], [github, google], [google]])
})

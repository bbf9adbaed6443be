import { describe, expect, test } from 'vitest'
import { english } from '../src/english.ts'
import { createSso, type SsoQuestion } from '../src/sso.ts'
import { chooseLanguage, LANGUAGES } from '../src/texts.ts'
import { buildJwt } from './service-double.ts'

const ORIGIN = 'https://b.example.test'
const NOW_SECONDS = 1_790_000_000

/** The page that a user sees who is signed in as somebody else. */
async function ask(headers: Record<string, string> = {}, question: SsoQuestion = {}): Promise<string> {
  const held = buildJwt({ sub: 'bob', exp: NOW_SECONDS + 60 })
  const token = buildJwt({ aud: ORIGIN, sub: 'ada' })
  const sso = createSso({ service: 'https://id.example.test', origin: ORIGIN, now: () => NOW_SECONDS * 1000, question })
  const answer = await sso.handle(
    new Request(`${ORIGIN}/?sso_token=${token}`, {
      headers: { cookie: `__Host-signalbox_session=${held}`, ...headers },
    }),
  )
  return (await answer?.text()) ?? ''
}

const placesOf = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort()

describe('the texts of the question', () => {
  test.each(Object.entries(LANGUAGES))('are complete in %s, with the same places, and none is empty', (_tag, texts) => {
    expect(Object.keys(texts).sort()).toEqual(Object.keys(english).sort())
    for (const [name, text] of Object.entries(texts)) {
      expect(placesOf(text), name).toEqual(placesOf(english[name as keyof typeof english]))
      expect(text.trim(), name).not.toBe('')
    }
  })

  test('differ between the languages', () => {
    const names = Object.keys(english) as (keyof typeof english)[]
    expect(names.filter((name) => LANGUAGES.de![name] === english[name])).toEqual([])
  })

  test('are each shown, to users with a name and to users without', async () => {
    for (const [tag, texts] of Object.entries(LANGUAGES)) {
      const plain = await ask({ 'accept-language': tag })
      const named = await ask({ 'accept-language': tag }, { nameUser: (id) => id.toUpperCase() })
      const filled = (text: string) => text.replace('{to}', 'ADA').replace('{from}', 'BOB')
      for (const name of ['title', 'text', 'button', 'stay'] as const) {
        expect(plain).toContain(`>${texts[name]}<`)
        expect(named).toContain(`>${filled(texts[`${name}Named`])}<`)
      }
      for (const page of [plain, named]) expect(page).toContain(`<html lang="${tag}">`)
    }
  })
})

describe('the language of the question', () => {
  test.each([
    [null, 'en'],
    ['de-AT,de;q=0.9,en;q=0.8', 'de'],
    ['fr, en;q=0.5, de;q=0.7', 'de'],
    ['de;q=0, fr', 'en'],
    ['*', 'en'],
    ['__proto__, constructor;q=0.9', 'en'],
    ['de;q=x', 'en'],
    [`${'x,'.repeat(100_000)}de`, 'en'],
  ])('is the one that the browser prefers: %j', (header, language) => {
    expect(chooseLanguage(header)).toBe(language)
  })

  test.each([
    ['de-CH', 'de'],
    [() => 'de', 'de'],
    [() => 'fr', 'en'],
    [() => undefined, 'en'],
    [
      () => {
        throw new Error('no session')
      },
      'en',
    ],
    [(request: Request) => request.headers.get('x-language') ?? undefined, 'de'],
  ] as const)('is what the app names, else what the browser prefers: %#', async (language, expected) => {
    const page = await ask({ 'accept-language': 'en', 'x-language': 'de' }, { language })
    expect(page).toContain(`<html lang="${expected}">`)
  })

  test('that there is not stops the start', async () => {
    await expect(ask({}, { language: 'fr' })).rejects.toThrow('question.language must be one of en, de')
  })
})

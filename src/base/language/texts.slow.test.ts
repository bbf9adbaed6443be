import { describe, expect, test } from 'vitest'
import { readRepository } from '../../../test/tidy/source-file.ts'
import { SCOPES } from '../../oauth/scope/scope-catalogue.ts'
import { CATALOGUES, chooseTexts, LANGUAGES, type TextKey } from './texts.ts'

const KEYS = Object.keys(CATALOGUES.en!) as TextKey[]
const SOURCES = readRepository().filter(({ path }) => /^src\/.*\.ts$/.test(path) && !/\.test\.ts$/.test(path))
const QUOTED = new Set(SOURCES.flatMap(({ text }) => text.match(/'[\w.-]+'/g) ?? []))

describe('the texts', () => {
  test.each(Object.entries(CATALOGUES))(
    'are complete in %s, with the same places, and none is empty',
    (_lang, texts) => {
      const placesOf = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort()
      expect(Object.keys(texts).sort()).toEqual([...KEYS].sort())
      for (const key of KEYS) {
        expect(placesOf(texts[key]), key).toEqual(placesOf(CATALOGUES.en![key]))
        expect(texts[key].trim(), key).not.toBe('')
      }
    },
  )

  test('differ between the languages, but for words that both have', () => {
    const same = KEYS.filter((key) => CATALOGUES.de![key] === CATALOGUES.en![key])
    expect(same.map((key) => CATALOGUES.en![key]).sort()).toEqual([
      'Code',
      'Code',
      'Name',
      'Passkeys',
      'Secret',
      'Start',
    ])
  })

  test('have words for every scope in every language', () => {
    const expected = SCOPES.flatMap(({ name }) => [`scope.${name}.text`, `scope.${name}.title`]).sort()
    expect(KEYS.filter((key) => key.startsWith('scope.')).sort()).toEqual(expected)
  })

  test('are each used', () => {
    // Built of a prefix and a name: problems by their code, scopes and sample users by their names, links of a list, mails
    // about webhooks by their kind, mails with one link by their name, second steps by the first.
    const built =
      /^(?:mail\.(?:reset|verification|new-address|old-address|sign-up|known|invitation)\.(?:subject|text|use|button)|mail\.webhook\.(?:global\.)?(?:why|(?:failing|disabled|recovered)\.[\w-]+)|problem\.\w+(?:\.\w+)?\.(?:title|text)|scope\..*|sample\.\w+|second-step\.text-(?:mail|reset)|home\.\w+(?:-text|-open)?)$/
    expect(KEYS.filter((key) => !QUOTED.has(`'${key}'`) && !built.test(key))).toEqual([])
  })

  test.each([
    [{}, 'en'],
    [{ acceptLanguage: 'de-AT,de;q=0.9,en;q=0.8' }, 'de'],
    [{ acceptLanguage: 'fr, en;q=0.5, de;q=0.7' }, 'de'],
    [{ acceptLanguage: 'de;q=0, fr' }, 'en'],
    [{ acceptLanguage: 'de', uiLocales: 'en' }, 'en'],
    [{ acceptLanguage: 'en', uiLocales: 'fr de-CH' }, 'de'],
    [{ acceptLanguage: '*', uiLocales: ['de', 'de'] }, 'en'],
    [{ acceptLanguage: 'en', kept: 'de' }, 'de'],
    [{ acceptLanguage: 'de', kept: 'xx' }, 'de'],
    [{ acceptLanguage: 'de', kept: 'de', uiLocales: 'en' }, 'en'],
  ])('are chosen by what the request prefers: %j', (wishes, lang) => {
    expect(chooseTexts(wishes).lang).toBe(lang)
    expect(LANGUAGES.map((texts) => texts.lang)).toContain(lang)
  })
})

/** Readable text of a piece of HTML: text between tags, and the attributes that are shown or read aloud. */
function findWords(markup: string): string[] {
  const attributes = [...markup.matchAll(/\s(?:alt|aria-label|placeholder|title|data-(?:show|hide)[a-z-]*)="([^"]*)"/g)]
  // A template of attributes alone, which another one inserts into a tag.
  if (/^(?: [a-z-]+(?:="[^"]*")?)+$/.test(markup)) return []
  const text = markup
    .replace(/<code[\s\S]*?<\/code>/g, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/&\w+;/g, ' ')
  return [...attributes.map((match) => match[1] ?? ''), text].flatMap((part) => part.match(/\p{L}{2,}/gu) ?? [])
}

/** The end of a `${}` that begins at `from`: behind its closing brace, with the strings and templates in it skipped. */
function skipPlace(text: string, from: number): number {
  let depth = 1
  let at = from
  while (at < text.length && depth > 0) {
    const char = text[at]
    if (char === "'" || char === '"') at = text.indexOf(char, at + 1)
    else if (char === '`') at = readTemplate(text, at + 1).end - 1
    else if (char === '{') depth += 1
    else if (char === '}') depth -= 1
    at += 1
  }
  return at
}

/** The text of a template that begins at `from`, without its places, and where it ends. */
function readTemplate(text: string, from: number): { words: string; end: number } {
  let words = ''
  let at = from
  while (at < text.length && text[at] !== '`') {
    if (text.startsWith('${', at)) {
      at = skipPlace(text, at + 2)
      words += '\u0000'
    } else {
      words += text[at]
      at += text[at] === '\\' ? 2 : 1
    }
  }
  return { words, end: at + 1 }
}

/** The words that stand in the templates of a file, and so in no catalogue. */
function listTemplateWords(path: string, text: string): string[] {
  const starts = [...text.matchAll(/(?<![\w'`/.])html`/g)].map(({ index }) => index + 'html`'.length)
  return starts.flatMap((start) => findWords(readTemplate(text, start).words).map((word) => `${path}: ${word}`))
}

/** Folders whose files say something to users, by a page or a mail, and not only to programs. */
const SAYING =
  /^src\/(?:identity\/(?:pages|mail|social-login\/(?:[\w-]+\/)?[\w-]*page)|oauth\/[\w-]+\/(?:[\w-]+-page|provider-pages)|webhook\/mail\/(?:[\w-]+-page|notice-mail))/

/** The members of objects whose values a user reads. */
const SHOWN = new Set(['title', 'label', 'text', 'hint', 'subject', 'before', 'after', 'button', 'notice'])

/** Sentences that stand in such members. */
function listShownLiterals(path: string, text: string): string[] {
  const literals = text.matchAll(/\b(\w+): ('[^'\n]*'|"[^"\n]*"|`[^`\n]*`)/g)
  return [...literals]
    .filter(([, name = '', value = '']) => SHOWN.has(name) && /^.\p{Lu}|\p{L}\s/u.test(value.replace(/\$\{.*\}/, '')))
    .map(([, , value = '']) => `${path}: ${value.slice(1, -1)}`)
}

describe('a page or a mail', () => {
  test('has no words of its own in a template', () => {
    const pages = SOURCES.filter(({ path, text }) => text.includes('html`') && !path.startsWith('src/http/reference/'))
    expect(pages.length).toBeGreaterThan(20)
    expect(pages.flatMap(({ path, text }) => listTemplateWords(path, text))).toEqual([])
  })

  test('has no words of its own in a title, a label or a message', () => {
    const pages = SOURCES.filter(({ path }) => SAYING.test(path))
    expect(pages.length).toBeGreaterThan(20)
    expect(pages.flatMap(({ path, text }) => listShownLiterals(path, text))).toEqual([])
  })

  test('would be found if it had', () => {
    expect(listTemplateWords('one.ts', `const a = html\`<p class="x">Two words \${b}</p>\``)).toEqual([
      'one.ts: Two',
      'one.ts: words',
    ])
    expect(listTemplateWords('one.ts', `const a = html\`<nav aria-label="Account">\${b}</nav>\``)).toEqual([
      'one.ts: Account',
    ])
    expect(listTemplateWords('one.ts', `const a = html\`<p class="quiet">\${texts.say(k)}</p>\``)).toEqual([])
    expect(listShownLiterals('one.ts', "const a = { title: 'Sign in', label: 'sign-in.title' }")).toEqual([
      'one.ts: Sign in',
    ])
  })
})

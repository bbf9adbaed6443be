import { english, type Texts } from './english.ts'
import { german } from './german.ts'

/** The languages of the question by their tag (BCP 47), the default first. Another one is one more file with the same texts. */
export const LANGUAGES: Readonly<Record<string, Texts>> = { en: english, de: german }

/** The longest header or tag that is read. */
const READ_CHARACTERS = 500

/** The language of a tag such as `de-AT`; undefined for one that there is not. */
export function findLanguage(tag: string): string | undefined {
  const primary = tag.slice(0, READ_CHARACTERS).trim().toLowerCase().split('-', 1)[0] ?? ''
  return Object.hasOwn(LANGUAGES, primary) ? primary : undefined
}

/** The first language that an `Accept-Language` header prefers and that there is (RFC 9110 section 12.5.4), else English. */
export function chooseLanguage(header: string | null): string {
  const wishes = (header ?? '')
    .slice(0, READ_CHARACTERS)
    .split(',')
    .map((part) => {
      const [tag = '', ...parameters] = part.split(';').map((text) => text.trim())
      const weight = parameters.find((text) => text.startsWith('q='))
      return { tag, weight: weight === undefined ? 1 : Number(weight.slice(2)) }
    })
  const wished = wishes.filter(({ weight }) => weight > 0).sort((a, b) => b.weight - a.weight)
  for (const { tag } of wished) {
    const language = findLanguage(tag)
    if (language !== undefined) return language
  }
  return 'en'
}

/** A text with its values. */
export function say(language: string, name: keyof Texts, values: Readonly<Record<string, string>> = {}): string {
  const texts = LANGUAGES[language] ?? english
  return texts[name].replace(/\{(\w+)\}/g, (place, value: string) => values[value] ?? place)
}

import { type Html, type HtmlValue, html } from '../pages/html.ts'
import { GERMAN } from './page-text-de.ts'
import { ENGLISH } from './page-text-en.ts'

/** The name of a text. */
export type TextKey = keyof (typeof ENGLISH)['texts']

/** The texts of the OAuth pages in one language. */
export interface PageTexts {
  /** BCP 47. */
  lang: string
  texts: Readonly<Record<TextKey, string>>
  /** What the scopes of the catalogue mean, by name. */
  scopes: Readonly<Record<string, { title: string; description: string }>>
}

/** The languages of the OAuth pages, the default first (docs/contract/oauth.md#languages). */
export const LANGUAGES: readonly PageTexts[] = [ENGLISH, GERMAN]

/** What a request says about the language. */
export interface LanguageWishes {
  /** The parameter `ui_locales` (OpenID Connect Core section 3.1.2.1): tags by preference, separated by spaces. */
  uiLocales?: unknown
  acceptLanguage?: string | undefined
}

/** The texts for a request: in the first language that it prefers and that there is, else in English. Pure. */
export function choosePageTexts({ uiLocales, acceptLanguage = '' }: LanguageWishes): PageTexts {
  const asked = typeof uiLocales === 'string' ? uiLocales.split(' ') : []
  for (const tag of [...asked, ...readAcceptLanguage(acceptLanguage)]) {
    const primary = tag.toLowerCase().split('-', 1)[0]
    const found = LANGUAGES.find(({ lang }) => lang === primary)
    if (found) return found
  }
  return ENGLISH
}

/** The tags of an `Accept-Language` header (RFC 9110 section 12.5.4), the most preferred first. */
function readAcceptLanguage(header: string): string[] {
  return header
    .slice(0, 500)
    .split(',')
    .map((part) => {
      const [tag = '', ...parameters] = part.split(';').map((text) => text.trim())
      const weight = parameters.find((text) => text.startsWith('q='))
      return { tag, weight: weight === undefined ? 1 : Number(weight.slice(2)) }
    })
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight)
    .map(({ tag }) => tag)
}

/** A text with its values, for places that take no markup, such as the title. */
export function fillText({ texts }: PageTexts, key: TextKey, values: Readonly<Record<string, string>> = {}): string {
  return texts[key].replace(/\{(\w+)\}/g, (place, name: string) => values[name] ?? place)
}

/** A text with its values as HTML; text is escaped. */
export function renderText({ texts }: PageTexts, key: TextKey, values: Readonly<Record<string, HtmlValue>> = {}): Html {
  const parts = texts[key].split(/\{(\w+)\}/)
  return html`${parts.map((part, index) => (index % 2 === 1 ? values[part] : part))}`
}

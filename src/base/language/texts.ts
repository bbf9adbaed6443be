import german from './de.json' with { type: 'json' }
import english from './en.json' with { type: 'json' }

/** The name of a text. */
export type TextKey = keyof typeof english

/** Every text of the service for users, in one language. `{name}` is a placeholder. */
export type Catalogue = Readonly<Record<TextKey, string>>

/** The values for the placeholders of a text. */
export type TextValues = Readonly<Record<string, string | number>>

/** Texts of the service in one language. */
export interface Texts {
  /** BCP 47. */
  lang: string
  /** The text with its values, as plain text. */
  say(key: TextKey, values?: TextValues): string
  /** The text with its placeholders. */
  patternOf(key: TextKey): string
}

function buildTexts(lang: string, catalogue: Catalogue): Texts {
  return {
    lang,
    patternOf: (key) => catalogue[key],
    say: (key, values = {}) =>
      catalogue[key].replace(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place)),
  }
}

/** Whether there is a text of this name. */
export function isTextKey(name: string): name is TextKey {
  return Object.hasOwn(english, name)
}

export const CATALOGUES: Readonly<Record<string, Catalogue>> = { en: english, de: german }

/** The texts in English, the default. */
export const ENGLISH: Texts = buildTexts('en', english)

/** The languages of the service, the default first (docs/contract/pages.md#languages). */
export const LANGUAGES: readonly Texts[] = [ENGLISH, buildTexts('de', german)]

/** Language preferences of a request, the strongest first. */
export interface LanguageWishes {
  /** The parameter `ui_locales` (OpenID Connect Core section 3.1.2.1): tags by preference, separated by spaces. */
  uiLocales?: unknown
  /** Language that the app requested at the start of this flow. */
  kept?: string | undefined
  acceptLanguage?: string | undefined
}

/** The first of our languages that these tags name. Pure. */
export function findLanguage(tags: readonly string[]): Texts | undefined {
  for (const tag of tags) {
    const primary = tag.toLowerCase().split('-', 1)[0]
    const found = LANGUAGES.find(({ lang }) => lang === primary)
    if (found) return found
  }
  return undefined
}

/** The tags of the parameter `ui_locales`. */
export function readUiLocales(value: unknown): string[] {
  return typeof value === 'string' ? value.slice(0, 500).split(' ') : []
}

/** The texts for a request: in the first preferred language that exists, else in English. Pure. */
export function chooseTexts({ uiLocales, kept, acceptLanguage = '' }: LanguageWishes): Texts {
  const wished = [...readUiLocales(uiLocales), ...(kept === undefined ? [] : [kept])]
  return findLanguage([...wished, ...readAcceptLanguage(acceptLanguage)]) ?? ENGLISH
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

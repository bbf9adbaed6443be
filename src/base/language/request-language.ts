import { parseCookie } from 'cookie'
import { chooseTexts, type Texts } from './texts.ts'

/** The cookie with the language that an app requested, for the pages of a flow. */
export const LANGUAGE_COOKIE = 'signalbox_language'

/** The headers of a request. */
export type LanguageHeaders = Readonly<Record<string, string | string[] | undefined>>

const readText = (value: string | string[] | undefined) => (typeof value === 'string' ? value : undefined)

/** The language of the cookie. */
export function readKeptLanguage(cookieHeader: string | undefined): string | undefined {
  return parseCookie(cookieHeader ?? '')[LANGUAGE_COOKIE]
}

/** The texts for a request: in the language of its flow, else of the browser (docs/contract/pages.md#languages). */
export function chooseRequestTexts(headers: LanguageHeaders): Texts {
  return chooseTexts({
    kept: readKeptLanguage(readText(headers.cookie)),
    acceptLanguage: readText(headers['accept-language']),
  })
}

/** The languages of the console. */
export const LANGUAGES = ['en', 'de'] as const

export type Language = (typeof LANGUAGES)[number]

/** Where the choice of this browser is kept. It is no secret. */
const CHOICE = 'signalbox-console-language'

/** The language that this browser has chosen, else that of the page. */
export function readLanguage(ofPage: string): Language {
  const chosen = localStorage.getItem(CHOICE) ?? ofPage
  return LANGUAGES.find((language) => language === chosen) ?? 'en'
}

/** Keeps the choice of this browser. */
export const keepLanguage = (language: Language) => localStorage.setItem(CHOICE, language)

/** Loads the texts of a language; each is a file of its own, of which a page loads one. */
export async function loadTexts(language: Language): Promise<Readonly<Record<string, string>>> {
  const { default: texts } = await (language === 'de' ? import('./de.json') : import('./en.json'))
  return texts
}

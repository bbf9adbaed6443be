import i18next, { type i18n } from 'i18next'
import { initReactI18next } from 'react-i18next'
import type portal from '../portal/language/en.json'
import { keepLanguage, type Language, loadTexts, readLanguage } from './choice.ts'
import type en from './en.json'
import { INTERPOLATION, VALUES } from './values.ts'

declare module 'i18next' {
  interface CustomTypeOptions {
    defaultNS: 'console'
    resources: { console: typeof en; portal: typeof portal }
    enableSelector: false
  }
}

/** Shows the page as one in this language, from right to left if it is written so. */
function showLanguage(language: Language): void {
  document.documentElement.lang = language
  document.documentElement.dir = i18next.dir(language)
}

/** Starts with the chosen language, else that of the page. The texts of each language are whole, so none falls back. */
export async function startLanguage(ofPage: string): Promise<i18n> {
  const language = readLanguage(ofPage)
  await i18next
    .use(initReactI18next)
    .use(VALUES)
    .init({
      lng: language,
      fallbackLng: false,
      ns: ['console'],
      defaultNS: 'console',
      keySeparator: false,
      nsSeparator: false,
      interpolation: INTERPOLATION,
      resources: { [language]: { console: await loadTexts(language) } },
    })
  showLanguage(language)
  return i18next
}

/** Changes the language of the console in this browser. */
export async function chooseLanguage(language: Language): Promise<void> {
  if (!i18next.hasResourceBundle(language, 'console'))
    i18next.addResourceBundle(language, 'console', await loadTexts(language))
  keepLanguage(language)
  showLanguage(language)
  await i18next.changeLanguage(language)
}

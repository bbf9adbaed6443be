import i18next, { type i18n } from 'i18next'
import { initReactI18next } from 'react-i18next'
import type portal from '../portal/language/en.json'
import en from './en.json'

/** The languages of the console. */
export const LANGUAGES = ['en', 'de'] as const

export type Language = (typeof LANGUAGES)[number]

declare module 'i18next' {
  interface CustomTypeOptions {
    defaultNS: 'console'
    resources: { console: typeof en; portal: typeof portal }
    enableSelector: false
  }
}

/** Where the choice of this browser is kept. It is no secret. */
const CHOICE = 'signalbox-console-language'

/** Starts with the chosen language, else that of the page. Loads its texts where they are not English. */
export async function startLanguage(ofPage: string): Promise<i18n> {
  const chosen = localStorage.getItem(CHOICE) ?? ofPage
  const language = LANGUAGES.find((language) => language === chosen) ?? 'en'
  await i18next.use(initReactI18next).init({
    lng: language,
    fallbackLng: 'en',
    ns: ['console'],
    defaultNS: 'console',
    keySeparator: false,
    nsSeparator: false,
    interpolation: { escapeValue: false },
    resources: { en: { console: en } },
  })
  if (language !== 'en') await chooseLanguage(language)
  return i18next
}

/** Changes the language of the console in this browser. */
export async function chooseLanguage(language: Language): Promise<void> {
  if (!i18next.hasResourceBundle(language, 'console')) {
    const { default: texts } = await import('./de.json')
    i18next.addResourceBundle(language, 'console', texts)
  }
  localStorage.setItem(CHOICE, language)
  document.documentElement.lang = language
  await i18next.changeLanguage(language)
}

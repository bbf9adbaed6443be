import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import console from '../language/en.json'
import { INTERPOLATION, VALUES } from '../language/values.ts'
import portal from './language/en.json'

/** The page of a language that is written from right to left is read so. */
const showDirection = (language: string) => {
  document.documentElement.dir = i18next.dir(language)
}

/** Starts with the language of the page, which is that of the link. A framed page has no storage to keep a choice in. */
export async function startPortalLanguage(language: string): Promise<void> {
  await i18next
    .use(initReactI18next)
    .use(VALUES)
    .init({
      lng: 'en',
      fallbackLng: 'en',
      ns: ['console', 'portal'],
      defaultNS: 'console',
      keySeparator: false,
      nsSeparator: false,
      interpolation: INTERPOLATION,
      resources: { en: { console, portal } },
    })
  showDirection(language)
  if (language !== 'de') return
  const [ofConsole, ofPortal] = await Promise.all([import('../language/de.json'), import('./language/de.json')])
  i18next.addResourceBundle('de', 'console', ofConsole.default)
  i18next.addResourceBundle('de', 'portal', ofPortal.default)
  await i18next.changeLanguage('de')
}

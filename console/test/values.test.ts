import i18next from 'i18next'
import { expect, test } from 'vitest'
import de from '../src/language/de.json' with { type: 'json' }
import en from '../src/language/en.json' with { type: 'json' }
import { INTERPOLATION, VALUES } from '../src/language/values.ts'

const say = async (lng: 'de' | 'en') => {
  const texts = i18next.createInstance().use(VALUES)
  await texts.init({
    ...{ lng, fallbackLng: false, ns: ['console'], defaultNS: 'console', keySeparator: false, nsSeparator: false },
    ...{ interpolation: INTERPOLATION, resources: { de: { console: de }, en: { console: en } } },
  })
  return texts.t
}

test('a number stands in a text as its language writes it, and a word as it is', async () => {
  const [german, english] = [await say('de'), await say('en')]
  expect(german('limits.used', { used: 12, limit: 2_000 })).toBe('12 von 2.000')
  expect(english('limits.used', { used: 12, limit: 2_000 })).toBe('12 of 2,000')
  expect(german('audit.export-limit', { limit: 10_000 })).toContain('Höchstens 10.000 Einträge')
  expect(german('bulk.count', { count: 1_260 })).toBe('1.260 Zustellungen')
  expect(german('webhooks.deactivated', { name: '<1000>' })).toContain('<1000> ist inaktiv')
})

test('what is left until a webhook is disabled agrees in number', async () => {
  const german = await say('de')
  expect(german('webhooks.streak-text', { count: 1 })).toContain('1 weiteren Fehler wird')
  expect(german('webhooks.streak-text', { count: 5 })).toContain('5 weiteren Fehlern wird')
})

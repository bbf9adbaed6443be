import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { type FieldError, findFieldText, toSentence } from '../src/parts/refusal/field-text.ts'
import type { LateTexts } from '../src/parts/words/late-texts.ts'

const read = async (language: string): Promise<LateTexts> => ({
  language,
  texts: JSON.parse(
    await readFile(new URL(`../src/language/refusals-${language}.json`, import.meta.url), 'utf8'),
  ) as Record<string, string>,
})

const english = await read('en')
const german = await read('de')

const field = (code: string, params?: FieldError['params'], message = 'of the API'): FieldError => ({
  ...{ path: 'name', code, message },
  ...(params && { params }),
})

test.each<[string, FieldError['params'], string, string]>([
  ['maxLength', { limit: 200 }, 'At most 200 characters.', 'Höchstens 200 Zeichen.'],
  ['maxLength', { limit: 1_024 }, 'At most 1,024 characters.', 'Höchstens 1.024 Zeichen.'],
  ['minLength', { limit: 1 }, 'Fill this in.', 'Füllen Sie dieses Feld aus.'],
  ['minItems', { limit: 1 }, 'Add at least one entry.', 'Fügen Sie mindestens einen Eintrag hinzu.'],
  ['too_short', { least: 8, most: 256 }, '8 to 256 characters.', '8 bis 256 Zeichen.'],
  [
    'too_large',
    { bytes: 524_288 },
    'At most 512 KiB. Choose a smaller file.',
    'Höchstens 512 KiB. Wählen Sie eine kleinere Datei.',
  ],
  ['enum', { values: ['a', 'b', 'c'] }, 'Allowed: a, b, or c.', 'Erlaubt: a, b oder c.'],
  ['type', { types: ['string', 'null'] }, 'Needed: a text or null.', 'Nötig: ein Text oder null.'],
  ['format', { format: 'email' }, 'Write an e-mail address.', 'Geben Sie eine E-Mail-Adresse an.'],
  [
    'pattern',
    { pattern: '\\S' },
    'Write at least one visible character.',
    'Schreiben Sie mindestens ein sichtbares Zeichen.',
  ],
  ['pattern', { pattern: '^x$' }, 'Must match the pattern ^x$.', 'Muss dem Muster ^x$ entsprechen.'],
  [
    'after_maker',
    { instant: '2026-09-11T08:00:00.000Z' },
    'At the latest Sep 11, 2026, 8:00:00 AM UTC: then the key of this request expires.',
    'Spätestens 11.09.2026, 08:00:00 UTC: Dann läuft der Schlüssel dieser Anfrage ab.',
  ],
])('%s with %j is a sentence with the number or the words of the rule', (code, params, inEnglish, inGerman) => {
  const told = [english, german].map((texts) => findFieldText(field(code, params), texts))
  expect(told).toEqual([inEnglish, inGerman])
})

test('an entry of an older service, without params, and one with others have the sentence of the code', () => {
  expect(findFieldText(field('maxLength'), german)).toBe('Zu lang. Kürzen Sie den Text.')
  expect(findFieldText(field('maxLength', {}), german)).toBe('Zu lang. Kürzen Sie den Text.')
  expect(findFieldText(field('maxLength', { least: 1, most: 2 }), german)).toBe('Zu lang. Kürzen Sie den Text.')
  expect(findFieldText(field('format', { format: 'color' }), german)).toBe('Hat nicht die richtige Form.')
})

test('twenty values may not be all', () => {
  const values = Array.from({ length: 20 }, (_, index) => `w${index}`)
  expect(findFieldText(field('enum', { values }), german)).toMatch(/^Erlaubt: w0, .*, w19, …\.$/)
})

test('a code of a newer service has no sentence, nor has a name that every object inherits', () => {
  for (const code of ['brand_new', 'constructor', '']) expect(findFieldText(field(code), german)).toBeUndefined()
})

test('English keeps a message that says which of several rules is broken, and German has a sentence', () => {
  expect(findFieldText(field('url_invalid'), english)).toBeUndefined()
  expect(findFieldText(field('url_invalid'), german)).toMatch(/^Geben Sie eine absolute URL/)
  expect(findFieldText(field('required', undefined, 'is required'), english)).toBe('Fill this in.')
  expect(findFieldText(field('required', undefined, 'is required when kind is oidc'), english)).toBeUndefined()
  expect(findFieldText(field('required', { other: 'url' }, 'goes with the URL'), german)).toBe(
    'Zusammen mit url anzugeben.',
  )
})

test('a setting that allows a private host is in the sentence', () => {
  const setting = 'WEBHOOK_ALLOWED_PRIVATE_TARGETS=10.1.2.3:443'
  expect(findFieldText(field('url_host_not_public', { setting }), german)).toContain(setting)
})

test.each([
  ['must begin with https://', 'Must begin with https://.'],
  ['is required; give the URL.', 'Is required; give the URL.'],
  ['contract.create was deactivated by an operator', 'contract.create was deactivated by an operator.'],
  ['There is no role with this id.', 'There is no role with this id.'],
])('the message %j is shown as %j', (message, sentence) => {
  expect(toSentence(message)).toBe(sentence)
})

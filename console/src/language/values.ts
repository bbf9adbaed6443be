import type { FormatterModule } from 'i18next'
import { numberFormat } from '../parts/words/formats.ts'

/** Values in the places of a text: a number as the language writes it, anything else as it is. */
export const VALUES: FormatterModule = {
  type: 'formatter',
  init: () => {},
  add: () => {},
  addCached: () => {},
  format: (value: unknown, _format, language = 'en') =>
    typeof value === 'number' ? numberFormat(language).format(value) : String(value ?? ''),
}

/** Every value is written by `VALUES`; the page escapes it. */
export const INTERPOLATION = { escapeValue: false, alwaysFormat: true }

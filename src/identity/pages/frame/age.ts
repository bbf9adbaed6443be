import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'

const UNITS = [
  { seconds: 86_400, name: 'day' },
  { seconds: 3_600, name: 'hour' },
  { seconds: 60, name: 'minute' },
] as const

/** Beyond this age a date says more than a number of days. */
const DATE_AFTER_SECONDS = 14 * 86_400

interface Formats {
  date: Intl.DateTimeFormat
  age: Intl.RelativeTimeFormat
  instant: Intl.DateTimeFormat
}

const FORMATS = new Map<string, Formats>()

/** The formats of a language. They are built at their first use: that loads the data of the language. */
function findFormats(lang: string): Formats {
  const found = FORMATS.get(lang)
  if (found) return found
  // `3 May 2026`, not `May 3, 2026`.
  const locale = lang === 'en' ? 'en-GB' : lang
  const built = {
    date: new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }),
    age: new Intl.RelativeTimeFormat(locale, { numeric: 'always' }),
    instant: new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'long', timeZone: 'UTC' }),
  }
  FORMATS.set(lang, built)
  return built
}

/** An instant in words, to the minute: `3 May 2026 at 14:05 UTC`. */
export function describeInstant(texts: Texts, at: Date): string {
  return findFormats(texts.lang).instant.format(at)
}

/** Age of an instant in words: `just now`, `2 hours ago`, `on 3 May 2026`. */
export function describeAge(texts: Texts, at: Date, now: Date): string {
  const { date, age } = findFormats(texts.lang)
  const seconds = Math.max(0, Math.floor((now.getTime() - at.getTime()) / 1000))
  if (seconds >= DATE_AFTER_SECONDS) return texts.say('age.on', { date: date.format(at) })
  const unit = UNITS.find((unit) => seconds >= unit.seconds)
  if (unit === undefined) return texts.say('age.just-now')
  return age.format(-Math.floor(seconds / unit.seconds), unit.name)
}

/** The same as HTML, with the instant itself. */
export function renderAge(texts: Texts, at: Date, now: Date): Html {
  return html`<time datetime="${at.toISOString()}">${describeAge(texts, at, now)}</time>`
}

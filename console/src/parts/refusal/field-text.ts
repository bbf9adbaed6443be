import type { Schemas } from '@signalbox/client'
import { formatInstant } from '../format-instant.ts'
import { numberFormat, orFormat } from '../words/formats.ts'
import type { LateTexts } from '../words/late-texts.ts'

/** A broken rule, as the API names it. */
export type FieldError = Schemas['FieldError']

type Params = NonNullable<FieldError['params']>

/** Values of an entry at most; there may be more. */
const VALUES_LIMIT = 20

/** Codes whose English message says more than a sentence for all causes: which of several, or a name. */
export const TOLD_BY_MESSAGE: ReadonlySet<string> = new Set([
  'alone',
  'event_deactivated',
  'inactive_event',
  'key',
  'missing',
  'no_effect_in_scope',
  'not_a_certificate',
  'not_allowed',
  'not_an_image',
  'not_fetched',
  'not_metadata',
  'not_of_mode',
  'not_read',
  'not_rsa',
  'own_event',
  'redirect_uri',
  'reserved',
  'unknown_permission',
  'url_host_not_public',
  'url_invalid',
  'url_port_not_allowed',
  'values',
])

/** The message of `required` that says no more than its code. */
const BARE_REQUIRED = 'is required'

/**
 * The sentence for a broken rule. The most specific one whose places all have a value counts: for a bound of one, for a
 * known pattern, for the members of `params`, for the code. Undefined where the API's message says it: for a code that
 * `texts` does not know, and in English where it says more. Pure.
 */
export function findFieldText({ code, message, params = {} }: FieldError, told: LateTexts): string | undefined {
  if (told.language === 'en' && isToldByMessage(code, message)) return undefined
  const keys = [
    ...(params.limit === 1 ? [`field.${code}.one`] : []),
    ...(params.pattern === undefined ? [] : [`pattern.${params.pattern}`]),
    `field.${code}.${Object.keys(params).sort().join('+')}`,
    `field.${code}`,
  ]
  for (const key of keys) {
    const text = Object.hasOwn(told.texts, key) ? fill(told.texts[key] ?? '', params, told) : undefined
    if (text !== undefined) return text
  }
  return undefined
}

function isToldByMessage(code: string, message: string): boolean {
  return code === 'required' ? message !== BARE_REQUIRED : TOLD_BY_MESSAGE.has(code)
}

/** The message of the API as a sentence; one that begins with a name stays as it is. Pure. */
export function toSentence(message: string): string {
  const text = message.replace(/^[a-z]+(?= )/, (word) => word.slice(0, 1).toUpperCase() + word.slice(1))
  return /[.!?:]$/.test(text) ? text : `${text}.`
}

/** A text with the values of its places; undefined without one of them. */
function fill(text: string, params: Params, told: LateTexts): string | undefined {
  let isWhole = true
  const filled = text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = formatParam(name as keyof Params, params, told)
    if (value === undefined) isWhole = false
    return value ?? ''
  })
  return isWhole ? filled : undefined
}

function formatParam(name: keyof Params, params: Params, { language, texts }: LateTexts): string | undefined {
  const { bytes, format, instant, types, values } = params
  switch (name) {
    case 'bytes':
      return bytes === undefined ? undefined : `${numberFormat(language).format(bytes / 1024)} KiB`
    case 'format':
      return texts[`format.${format}`]
    case 'instant':
      return instant === undefined ? undefined : formatInstant(instant, language, 'UTC')
    case 'types':
      return types && orFormat(language).format(types.map((type) => texts[`type.${type}`] ?? type))
    case 'values':
      return values && formatValues(values, language)
    default: {
      const value = params[name]
      return typeof value === 'number' ? numberFormat(language).format(value) : value
    }
  }
}

/** The values that are taken; an ellipsis where the API may have left some out. */
const formatValues = (values: readonly string[], language: string) =>
  values.length < VALUES_LIMIT ? orFormat(language).format(values) : `${values.join(', ')}, …`

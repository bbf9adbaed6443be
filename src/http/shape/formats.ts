import { INSTANT_RULE, parseInstant } from './instant.ts'

/** 254 characters fit into SMTP's path of 256 (RFC 5321 section 4.5.3.1.3). */
const EMAIL_LENGTH_LIMIT = 254

// The atoms of RFC 5322 section 3.2.3, and the labels of RFC 1123 section 2.1. A separator that neither matches stands
// between nested repetitions, so matching takes linear time.
const EMAIL_LOCAL_PATTERN = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i
const HOST_LABEL_PATTERN = /^[a-z0-9-]{1,63}$/i

/** Whether `text` has the form of an e-mail address with a host name of two labels or more. */
export function isEmailAddress(text: string): boolean {
  if (text.length > EMAIL_LENGTH_LIMIT) return false
  const at = text.indexOf('@')
  if (at < 0 || !EMAIL_LOCAL_PATTERN.test(text.slice(0, at))) return false
  const labels = text.slice(at + 1).split('.')
  return labels.length >= 2 && labels.every(isHostLabel)
}

function isHostLabel(label: string): boolean {
  return HOST_LABEL_PATTERN.test(label) && !label.startsWith('-') && !label.endsWith('-')
}

/** A format: its check, and its rule in words that complete "must be ...". */
interface Format {
  isValid: (text: string) => boolean
  rule: string
}

/**
 * The formats that request schemas may use. Each takes time linear in the length of its text; those of ajv-formats are not
 * used, because not all of them do. A schema that names another format is refused when it is compiled.
 */
export const REQUEST_FORMATS: Readonly<Record<string, Format>> = {
  'date-time': { isValid: (text) => parseInstant(text) !== undefined, rule: INSTANT_RULE },
  email: { isValid: isEmailAddress, rule: 'an e-mail address' },
  uri: { isValid: (text) => URL.canParse(text), rule: 'a URL' },
  // The pattern beside it is stricter and reports the error; checking the format too would report it twice.
  uuid: { isValid: () => true, rule: 'a UUID in lower case' },
}

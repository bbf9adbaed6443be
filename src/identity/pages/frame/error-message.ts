import { isTextKey, type TextKey, type Texts } from '../../../base/language/texts.ts'

/** Text of an error. The reason is in the log and in the audit log. */
export interface ErrorMessage {
  title: string
  /** Cause and remedy, in one or two sentences. */
  text: string
}

const SAME_WORDS: Readonly<Record<string, string>> = {
  method_not_allowed: 'not_found',
  validation_failed: 'malformed_request',
  body_too_large: 'malformed_request',
  unsupported_media_type: 'malformed_request',
  overloaded: 'unavailable',
  dependency_unavailable: 'unavailable',
}

/** The message for a code, in the words of its cause where there are some; a general one for every unknown code. */
export function findErrorMessage(texts: Texts, code: string, cause?: string): ErrorMessage {
  const name = Object.hasOwn(SAME_WORDS, code) ? SAME_WORDS[code] : code
  for (const words of [`problem.${name}.${cause}`, `problem.${name}`]) {
    const [title, text] = [`${words}.title`, `${words}.text`]
    if (isTextKey(title) && isTextKey(text)) return { title: texts.say(title), text: texts.say(text) }
  }
  return { title: texts.say('problem.unknown.title'), text: texts.say('problem.unknown.text') }
}

/** Fault of a new password, by the code of the broken rule. */
export const PASSWORD_RULES: Readonly<Record<string, TextKey>> = {
  required: 'password.rule.required',
  too_short: 'password.rule.too-short',
  too_long: 'password.rule.too-long',
  common: 'password.rule.common',
  personal: 'password.rule.personal',
}

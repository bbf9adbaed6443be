import { isTextKey, type Texts } from '../../base/language/texts.ts'

/** What a scope means, in words: what the app may do, and a sentence about it. A scope without words has its name. */
export function describeScope(texts: Texts, name: string): { title: string; text: string } {
  const [title, text] = [`scope.${name}.title`, `scope.${name}.text`]
  return { title: isTextKey(title) ? texts.say(title) : name, text: isTextKey(text) ? texts.say(text) : '' }
}

import { isTextKey, type Texts } from '../../base/language/texts.ts'

/** Text of a scope: its title and a sentence about it. A scope without a text has its name. */
export function describeScope(texts: Texts, name: string): { title: string; text: string } {
  const [title, text] = [`scope.${name}.title`, `scope.${name}.text`]
  return { title: isTextKey(title) ? texts.say(title) : name, text: isTextKey(text) ? texts.say(text) : '' }
}

import type { TextKey, Texts } from '../../../base/language/texts.ts'

/** The message that a page shows for a name in its query; undefined for a name that the page does not know. */
export function findNotice(
  texts: Texts,
  notices: Readonly<Record<string, TextKey>>,
  name: string | undefined,
): string | undefined {
  const key = name !== undefined && Object.hasOwn(notices, name) ? notices[name] : undefined
  return key && texts.say(key)
}

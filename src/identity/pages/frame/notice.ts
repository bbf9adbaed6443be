import type { TextKey, Texts } from '../../../base/language/texts.ts'

/** The message that a page shows for a name in its query; undefined for an unknown name. */
export function findNotice(
  texts: Texts,
  notices: Readonly<Record<string, TextKey>>,
  name: string | undefined,
): string | undefined {
  const key = name !== undefined && Object.hasOwn(notices, name) ? notices[name] : undefined
  return key && texts.say(key)
}

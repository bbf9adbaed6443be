/**
 * Whether PostgreSQL keeps `text` as it is. It refuses U+0000, and half a surrogate pair has no encoding in UTF-8: the driver
 * would write U+FFFD instead. Text from outside is asked here where it enters, before anything depends on it.
 */
export function isStorableText(text: string): boolean {
  return !text.includes('\u0000') && text.isWellFormed()
}

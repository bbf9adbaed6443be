/**
 * Whether PostgreSQL stores `text` unchanged. It refuses U+0000, and a lone surrogate has no encoding in UTF-8: the
 * driver would write U+FFFD instead. External text is checked where it enters, before anything depends on it.
 */
export function isStorableText(text: string): boolean {
  return !text.includes('\u0000') && text.isWellFormed()
}

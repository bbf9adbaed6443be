/** The different lines of a text that hold something, in their order. Pure. */
export function listLines(text: string): string[] {
  const lines = text.split('\n').map((line) => line.trim())
  return [...new Set(lines.filter((line) => line !== ''))]
}

/** The resources of a webhook as the API takes them: null for all. Pure. */
export function toResourceIds(text: string): string[] | null {
  const ids = listLines(text)
  return ids.length === 0 ? null : ids
}

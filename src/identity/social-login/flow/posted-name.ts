const NAME_LIMIT = 200

/** The name that Apple posts as JSON, unsigned: nothing else of it is read. Null without one. Never throws. */
export function readPostedName(text: string | undefined): string | null {
  if (text === undefined) return null
  try {
    const { name } = JSON.parse(text) as { name?: Record<string, unknown> }
    const parts = [name?.firstName, name?.lastName].filter((part) => typeof part === 'string')
    return parts.join(' ').trim().slice(0, NAME_LIMIT) || null
  } catch {
    return null
  }
}

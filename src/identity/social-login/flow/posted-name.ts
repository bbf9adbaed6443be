/** Longest posted name, in characters. */
const NAME_LIMIT = 200

/**
 * Reads the name that Apple posts beside its answer, as JSON: `{ "name": { "firstName", "lastName" } }`. It is not
 * signed, so it is used as a name only; the address beside it is ignored. Null when there is none. Never throws.
 */
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

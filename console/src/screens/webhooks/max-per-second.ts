/** Attempts a second that a webhook may be limited to (docs/contract/webhooks.md#throttle). */
export const MAX_PER_SECOND = 1_000

/** The limit of a webhook as the API takes it: null for none; what is no number as NaN, which the API refuses. Pure. */
export function toMaxPerSecond(text: string): number | null {
  return text.trim() === '' ? null : Number(text.trim())
}

/** The limit as the text of a field. Pure. */
export function showMaxPerSecond(limit: number | null): string {
  return limit === null ? '' : String(limit)
}

/** Whether the text of the field is a limit, or empty for none. Pure. */
export function isMaxPerSecond(text: string): boolean {
  const limit = toMaxPerSecond(text)
  return limit === null || (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PER_SECOND)
}

/** Poll interval of a condition. */
const LOOK_MS = 20

/**
 * Waits for a condition outside this process: polls until `look` returns a value other than undefined or false, at most
 * `limitMs`. Rejects with `what` and the text of `describe` when the limit has passed.
 */
export async function waitFor<Value>(
  what: string,
  look: () => Promise<Value | undefined | false> | Value | undefined | false,
  options: { limitMs?: number; describe?: () => string } = {},
): Promise<Value> {
  const limitMs = options.limitMs ?? 40_000
  const deadline = performance.now() + limitMs
  for (;;) {
    const value = await look()
    if (value !== undefined && value !== false) return value
    if (performance.now() > deadline)
      throw new Error(`${what}: not within ${limitMs} ms. ${options.describe?.() ?? ''}`.trim())
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

/** `promise`, or a rejection that names `what` after `limitMs`. */
export function limit<Value>(promise: Promise<Value>, limitMs: number, what: string): Promise<Value> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`${what}: not within ${limitMs} ms`)), limitMs)
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer))
}

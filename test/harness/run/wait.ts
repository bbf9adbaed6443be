/** Far beyond what anything waited for takes, on a slow machine too. */
export const DEFAULT_LIMIT_MS = 60_000

/**
 * What a busy machine may add to a limit of the service: a test judges whether the limit is there, which without it is missed
 * by far more, and no test how fast the machine is.
 */
export const BUSY_MS = 15_000

/** Poll interval of a condition, at first and at most. Between them it is a tenth of the time that has passed. */
const FIRST_PAUSE_MS = 20
const LAST_PAUSE_MS = 200

/**
 * Waits for a condition outside this process: polls until `look` returns a value other than undefined or false, at most
 * `limitMs`. Rejects with `what` and the text of `describe` when the limit has passed. `lastPauseMs`: of a look that is dear.
 */
export async function waitFor<Value>(
  what: string,
  look: () => Promise<Value | undefined | false> | Value | undefined | false,
  options: { limitMs?: number; describe?: () => string; lastPauseMs?: number } = {},
): Promise<Value> {
  const limitMs = options.limitMs ?? DEFAULT_LIMIT_MS
  const startedAt = performance.now()
  for (;;) {
    const value = await look()
    if (value !== undefined && value !== false) return value
    const passedMs = performance.now() - startedAt
    if (passedMs > limitMs) throw new Error(`${what}: not within ${limitMs} ms. ${options.describe?.() ?? ''}`.trim())
    const pauseMs = Math.min(Math.max(FIRST_PAUSE_MS, passedMs / 10), options.lastPauseMs ?? LAST_PAUSE_MS)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** `promise`, or a rejection that names `what` after `limitMs`. */
export function limit<Value>(promise: Promise<Value>, limitMs: number, what: string): Promise<Value> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`${what}: not within ${limitMs} ms`)), limitMs)
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer))
}

/** Time for which a row waits to be pulled, from its routing or its last replay (docs/contract/pull.md#retention). */
export const PULL_KEPT_MS = 7 * 24 * 3_600_000

/** When a row that is written now, to be pulled, ends unfetched. */
export function findKeptUntil(now: Date): Date {
  return new Date(now.getTime() + PULL_KEPT_MS)
}

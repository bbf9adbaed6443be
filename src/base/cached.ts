import type { Clock } from './clock.ts'

/**
 * Returns a function that runs `load` at most once in `lifetimeMs`, counted from the start of the run. Calls within that
 * time share the result, also while `load` runs. A failure rejects the calls that share it and is not cached. A clock that
 * steps back ends the lifetime.
 */
export function cacheFor<Value>(
  clock: Pick<Clock, 'now'>,
  lifetimeMs: number,
  load: () => Promise<Value>,
): () => Promise<Value> {
  let entry: { value: Promise<Value>; loadedAtMs: number; isRunning: boolean } | undefined
  return () => {
    const ageMs = entry ? clock.now() - entry.loadedAtMs : 0
    if (entry && (entry.isRunning || (ageMs >= 0 && ageMs < lifetimeMs))) return entry.value
    const mine = { value: load(), loadedAtMs: clock.now(), isRunning: true }
    entry = mine
    mine.value.then(
      () => {
        mine.isRunning = false
      },
      () => {
        entry = undefined
      },
    )
    return mine.value
  }
}

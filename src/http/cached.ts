import type { Clock } from '../clock.ts'

/**
 * Returns a function that runs `load` at most once in `lifetimeMs`, counted from its start. Calls meanwhile share its
 * result, also while it runs, so that any number of requests costs one. A failure reaches those who share it and is not
 * kept. A clock that steps back ends the lifetime.
 */
export function cacheFor<Value>(
  clock: Pick<Clock, 'now'>,
  lifetimeMs: number,
  load: () => Promise<Value>,
): () => Promise<Value> {
  let held: { value: Promise<Value>; loadedAtMs: number; isRunning: boolean } | undefined
  return () => {
    const ageMs = held ? clock.now() - held.loadedAtMs : 0
    if (held && (held.isRunning || (ageMs >= 0 && ageMs < lifetimeMs))) return held.value
    const mine = { value: load(), loadedAtMs: clock.now(), isRunning: true }
    held = mine
    mine.value.then(
      () => {
        mine.isRunning = false
      },
      () => {
        held = undefined
      },
    )
    return mine.value
  }
}

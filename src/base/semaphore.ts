/** A number of places that few hold at a time and others wait for, first come, first served. */
export interface Semaphore {
  /** Takes a free place; false when there is none. */
  tryTake(): boolean
  /** Waits for a place. */
  take(): Promise<void>
  /**
   * The same until what `waitOver` returns ends; false when that came first. A free place waits for nothing, and then
   * `waitOver` is not called.
   */
  takeBefore(waitOver: () => Promise<unknown>): Promise<boolean>
  /** Frees a place, or hands it to the one who has waited longest. Throws when nobody holds one. */
  release(): void
  /** Places that are held. */
  taken(): number
  /** Those who wait. */
  waiting(): number
}

/** A semaphore of one place. */
export type Mutex = Semaphore

/** Builds a semaphore whose places are free. */
export function buildSemaphore(places: number): Semaphore {
  /** The set keeps the order; whoever gives up leaves it, so a place is never handed to somebody who has gone. */
  const queue = new Set<() => void>()
  let taken = 0

  function tryTake(): boolean {
    if (taken >= places) return false
    taken += 1
    return true
  }

  return {
    tryTake,
    take: () => (tryTake() ? Promise.resolve() : new Promise((resolve) => queue.add(resolve))),
    takeBefore: (waitOver) => {
      if (tryTake()) return Promise.resolve(true)
      const limit = waitOver()
      const { promise, resolve } = Promise.withResolvers<boolean>()
      const onPlace = () => resolve(true)
      queue.add(onPlace)
      // One step decides: who is still in the queue gives up, who is not has got the place.
      const giveUp = () => {
        if (queue.delete(onPlace)) resolve(false)
      }
      limit.then(giveUp, giveUp)
      return promise
    },
    release: () => {
      if (taken === 0) throw new Error('a place was released that nobody held')
      const [next] = queue
      if (next === undefined) {
        taken -= 1
        return
      }
      // Handed over without a moment at which it is free.
      queue.delete(next)
      next()
    },
    taken: () => taken,
    waiting: () => queue.size,
  }
}

/** Builds a mutex that nobody holds. */
export function buildMutex(): Mutex {
  return buildSemaphore(1)
}

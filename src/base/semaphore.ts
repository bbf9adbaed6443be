/** A counting semaphore, first come, first served. */
export interface Semaphore {
  /** Takes a free place; false when there is none. */
  tryTake(): boolean
  take(): Promise<void>
  /** Waits for a place until `waitOver` resolves; false when that came first. Not called with a free place. */
  takeBefore(waitOver: () => Promise<unknown>): Promise<boolean>
  /** Frees a place, or passes it to the longest waiter. Throws when no place is taken. */
  release(): void
  taken(): number
  waiting(): number
}

/** A semaphore of one place. */
export type Mutex = Semaphore

/** Builds a semaphore whose places are free. */
export function buildSemaphore(places: number): Semaphore {
  /** The set keeps the order; a waiter that gives up is removed, so a place is never passed to it. */
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
      // Decided in one step: a waiter still in the queue gives up, one that is not has got the place.
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
      // Passed on without becoming free.
      queue.delete(next)
      next()
    },
    taken: () => taken,
    waiting: () => queue.size,
  }
}

/** Builds an unlocked mutex. */
export function buildMutex(): Mutex {
  return buildSemaphore(1)
}

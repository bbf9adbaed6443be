/** How often the event loop is looked at, in milliseconds. */
const TICK_MS = 100
/** A delay of a tick below this is none: timers are late by some milliseconds under any load. */
const NOTICED_MS = 100

/** Tells for how long the event loop of this process has stood still. */
export interface LoopWatch {
  /** Milliseconds of all stalls since the start, the one that has just ended included. */
  stalledMs(): number
  stop(): void
}

/** Watches the event loop. `now` is monotonic milliseconds. */
export function watchLoop(now: () => number = () => performance.now()): LoopWatch {
  let tickedAt = now()
  let totalMs = 0
  const measure = () => {
    const lateMs = now() - tickedAt - TICK_MS
    return lateMs > NOTICED_MS ? lateMs : 0
  }
  const timer = setInterval(() => {
    totalMs += measure()
    tickedAt = now()
  }, TICK_MS)
  timer.unref()
  return { stalledMs: () => totalMs + measure(), stop: () => clearInterval(timer) }
}

/** A limit of time that stalls of this process do not shorten. */
export interface LiveDeadline {
  cancel(): void
  /** For how long the loop has stood still since the start of the deadline, in milliseconds. */
  stalledMs(): number
}

/**
 * Calls `onOver` when `limitMs` have gone by in which the event loop ran, at the latest after twice the time. What came
 * while the loop stood still is read first: timers run before sockets are read, so an answer that lies there would count as
 * none. Without a watch it is a plain limit, for what nobody is blamed for.
 */
export function startDeadline(watch: LoopWatch | undefined, limitMs: number, onOver: () => void): LiveDeadline {
  if (!watch) {
    const timer = setTimeout(onOver, limitMs)
    return { cancel: () => clearTimeout(timer), stalledMs: () => 0 }
  }
  const stalledBeforeMs = watch.stalledMs()
  const stalledMs = () => watch.stalledMs() - stalledBeforeMs
  let givenMs = 0
  let timer: NodeJS.Timeout | undefined
  let turn: NodeJS.Immediate | undefined

  const wait = (ms: number) => {
    timer = setTimeout(() => {
      const missedMs = Math.min(stalledMs(), limitMs) - givenMs
      if (missedMs <= 0) {
        // After the next look at the sockets.
        turn = setImmediate(onOver)
        return
      }
      givenMs += missedMs
      wait(missedMs)
    }, ms)
  }
  wait(limitMs)
  return {
    cancel: () => {
      clearTimeout(timer)
      clearImmediate(turn)
    },
    stalledMs,
  }
}

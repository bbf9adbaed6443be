const TICK_MS = 100
/** Delays below this are ignored: timers are late by some milliseconds under any load. */
const NOTICED_MS = 100

/** Measures stalls of the event loop of this process. */
export interface LoopWatch {
  /** Total milliseconds of stalls since the start, including the latest. */
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

/** A deadline that stalls of this process do not shorten. */
export interface LiveDeadline {
  cancel(): void
  /** Stall time since the start of the deadline, in milliseconds. */
  stalledMs(): number
}

/**
 * Calls `onOver` after `limitMs` in which the event loop ran, at the latest after twice the time. Data that arrived
 * during a stall is read first: timers run before sockets are read, so a waiting answer would be missed. Without a
 * watch it is a plain timeout.
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
        // After the next read of the sockets.
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

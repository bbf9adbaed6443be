/**
 * A right that one holder has at a time. Statements of one process that claim for one policy take turns: each counts the
 * attempts in flight before it runs, so two at once would both fill the same room.
 */
export interface Turn {
  /** Waits for the turn, first come, first served. */
  take(): Promise<void>
  /** The same until what `waitOver` returns resolves; false when that came first. A free turn waits for nothing. */
  takeBefore(waitOver: () => Promise<void>): Promise<boolean>
  release(): void
}

/** Builds a turn that nobody has. */
export function buildTurn(): Turn {
  const waiting: (() => void)[] = []
  let isTaken = false

  async function take(): Promise<void> {
    if (isTaken) await new Promise<void>((resolve) => waiting.push(resolve))
    isTaken = true
  }

  return {
    take,
    takeBefore: async (waitOver) => {
      if (!isTaken) return take().then(() => true)
      const { promise, resolve } = Promise.withResolvers<boolean>()
      const onTurn = () => resolve(true)
      waiting.push(onTurn)
      void waitOver().then(() => resolve(false))
      const isMine = await promise
      if (!isMine) waiting.splice(waiting.indexOf(onTurn), 1)
      return isMine
    },
    release: () => {
      const next = waiting.shift()
      // Handed over without a moment at which it is free.
      if (next) next()
      else isTaken = false
    },
  }
}

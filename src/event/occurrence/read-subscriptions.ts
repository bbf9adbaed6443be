/**
 * Which event types of reads have an active subscriber, held in memory (docs/contract/events.md#events-of-reads): a read
 * without a subscriber costs nothing. The note `r` of the triggers drops what is held; without a proof that notes arrive
 * (`Notifier.isProven`) the database is asked each time.
 */
export interface ReadSubscriptions {
  /** Whether some active webhook subscribes to `eventType`. */
  has(eventType: string): boolean | Promise<boolean>
  apply(note: string): void
}

/** Builds it. `list` reads the event types from the database. */
export function buildReadSubscriptions(options: {
  isProven: () => boolean
  list: () => Promise<string[]>
}): ReadSubscriptions {
  const { isProven, list } = options
  let held: ReadonlySet<string> | undefined
  let notes = 0

  async function read(eventType: string): Promise<boolean> {
    const before = notes
    const types = new Set(await list())
    // What was read before a note arrived is not held after it.
    if (before === notes) held = types
    return types.has(eventType)
  }

  return {
    has: (eventType) => (held && isProven() ? held.has(eventType) : read(eventType)),
    apply: (note) => {
      if (note !== 'r' && note !== '*') return
      notes += 1
      held = undefined
    },
  }
}

import {
  APPEND_LIMIT,
  checkOverlap,
  checkPosition,
  type EventLog,
  type LogEntry,
  LogError,
  type LogMessage,
} from '../../../src/carriage/log/log.ts'

/** A log in the memory of a test, with the faults of a broker. */
export interface MemoryLog extends EventLog {
  entries(): readonly LogEntry[]
  /** Unreachable until `mend`; what is appended meanwhile is stored all the same with `stores`. */
  break(stores?: 'stores'): void
  mend(): void
  /** Removes the messages after a sequence, as a server does that did not sync them. */
  lose(after: number): void
  /** Removes the messages up to a sequence, as the limits of a log do. */
  expire(upTo: number): void
  /** Another log in its place, which is empty. */
  replace(): void
  /** The connection is lost and made again, which nobody's call notices. */
  reconnect(): void
  /** Another writer appends. */
  intrude(message: LogMessage): void
}

/** Builds an empty log. */
export function buildMemoryLog(now: () => Date = () => new Date()): MemoryLog {
  let incarnation = 1
  let stored: LogEntry[] = []
  let last = 0
  let reconnects = 0
  let fault: 'none' | 'unreachable' | 'unanswered' = 'none'

  const check = () => {
    if (fault !== 'none') throw new LogError('unreachable', 'The log does not answer.')
  }
  const readState = () => ({
    incarnation: `memory-${incarnation}`,
    sequence: last,
    firstSequence: stored[0]?.sequence ?? last + 1,
    messages: stored.length,
    bytes: stored.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0),
  })
  const store = (messages: readonly LogMessage[]) => {
    for (const message of messages) {
      last += 1
      stored.push({ ...message, sequence: last, storedAt: now() })
    }
  }
  return {
    readState: async () => {
      check()
      return readState()
    },
    append: async (messages, after) => {
      if (fault !== 'unanswered') check()
      if (messages.length === 0 || messages.length > APPEND_LIMIT) throw new RangeError('1 to 1,000 messages')
      const state = readState()
      if (state.incarnation !== after.incarnation || state.sequence !== after.sequence)
        throw new LogError('conflict', `The log ends at ${state.sequence}, not at ${after.sequence}.`)
      store(messages)
      check()
      return { incarnation: state.incarnation, sequence: last }
    },
    read: async ({ from, fingerprint, subject = '>', limit }) => {
      check()
      if (!(from instanceof Date)) {
        checkPosition(from, readState())
        if (fingerprint !== undefined && from.sequence < last) {
          const { sequence } = from
          const entries = stored.filter((entry) => entry.sequence >= sequence).slice(0, limit + 1)
          return checkOverlap(entries, { sequence, fingerprint }, readState()).slice(0, limit)
        }
      }
      const isAfter = (entry: LogEntry) =>
        from instanceof Date ? entry.storedAt >= from : entry.sequence > from.sequence
      return stored.filter((entry) => isAfter(entry) && matches(subject, entry.subject)).slice(0, limit)
    },
    readAt: async (sequence) => {
      check()
      return stored.find((entry) => entry.sequence === sequence)
    },
    readLast: async () => {
      check()
      return stored.at(-1)
    },
    countReconnects: () => reconnects,
    isConnected: () => fault === 'none',
    close: async () => {},
    entries: () => stored,
    break: (stores) => {
      fault = stores ? 'unanswered' : 'unreachable'
    },
    mend: () => {
      reconnects += 1
      fault = 'none'
    },
    lose: (after) => {
      stored = stored.filter(({ sequence }) => sequence <= after)
      last = after
    },
    expire: (upTo) => {
      stored = stored.filter(({ sequence }) => sequence > upTo)
    },
    replace: () => {
      incarnation += 1
      stored = []
      last = 0
    },
    reconnect: () => {
      reconnects += 1
    },
    intrude: (message) => store([message]),
  }
}

/** Whether a subject matches a filter of NATS: `*` is one token, `>` one or more at the end. */
function matches(filter: string, subject: string): boolean {
  const [wanted, given] = [filter.split('.'), subject.split('.')]
  const end = wanted.indexOf('>')
  const counted = end === -1 ? given.length === wanted.length : given.length > end
  return counted && wanted.every((token, index) => ['*', '>'].includes(token) || token === given[index])
}

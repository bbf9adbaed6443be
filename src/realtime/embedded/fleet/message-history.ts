import type { OutgoingMessage } from './fleet.store.ts'

/** Retention of the messages that a process sent by the bus, for those that missed them. */
const KEPT_MS = 60_000
const KEPT_LIMIT = 20_000
const KEPT_LIMIT_BYTES = 16_777_216

export interface MessageHistory {
  add(messages: readonly OutgoingMessage[], nowMs: number): void
  remove(messages: readonly OutgoingMessage[]): void
  /** The kept messages after a number, up to another; `first` is the number from which on all are kept. */
  read(after: number, upTo: number): { first: number; messages: OutgoingMessage[] }
  readSince(atMs: number): OutgoingMessage[]
}

/** Builds an empty history. */
export function buildMessageHistory(): MessageHistory {
  const kept = new Map<number, { message: OutgoingMessage; bytes: number; atMs: number }>()
  let bytes = 0
  let first = 1

  function drop(number: number): void {
    const entry = kept.get(number)
    if (!entry) return
    kept.delete(number)
    bytes -= entry.bytes
  }

  function forgetOld(nowMs: number): void {
    for (const [number, { atMs }] of kept) {
      if (nowMs - atMs < KEPT_MS && kept.size <= KEPT_LIMIT && bytes <= KEPT_LIMIT_BYTES) return
      drop(number)
      first = number + 1
    }
  }

  return {
    add: (messages, nowMs) => {
      for (const message of messages) {
        const entry = { message, bytes: Buffer.byteLength(message.payload), atMs: nowMs }
        kept.set(message.number, entry)
        bytes += entry.bytes
      }
      forgetOld(nowMs)
    },
    remove: (messages) => {
      for (const { number } of messages) drop(number)
    },
    read: (after, upTo) => ({
      first,
      messages: [...kept.values()]
        .map(({ message }) => message)
        .filter(({ number }) => number > after && number <= upTo),
    }),
    readSince: (sinceMs) => [...kept.values()].filter(({ atMs }) => atMs >= sinceMs).map(({ message }) => message),
  }
}

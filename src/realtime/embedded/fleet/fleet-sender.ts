import type { Clock } from '../../../base/clock.ts'
import type { Bus } from '../../../carriage/bus/bus.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { writeText } from '../application/fleet-message.ts'
import type { FleetMessage } from '../application/state.ts'
import { type OutgoingMessage, type Sender, sendMessages, storeMessages } from './fleet.store.ts'
import { buildMessageHistory } from './message-history.ts'

/** Maximum number of messages in one statement, or between two confirmations of the bus. */
const BATCH_LIMIT = 200

/** A process that asks twice within this time does not receive the bus: then messages go by the database for as long. */
const REPEAT_WINDOW_MS = 10_000

/** Time before a stop whose messages are stored. */
const UNDER_WAY_MS = 5_000

/** The kinds that the bus may carry. What gives or ends access, or repairs a loss, is always stored. */
const CARRIED: ReadonlySet<FleetMessage['kind']> = new Set(['publish', 'shares', 'state'])

/** Numbers the messages of a process, and sends them in their order. */
export interface FleetSender {
  /** Resolves when the others can read it. */
  send(message: FleetMessage): Promise<void>
  /** The number of the last message that was sent of those that the bus may carry. */
  lastCarried(): number
  /** Messages that were sent by the bus, and by the database. */
  counts: { bus: number; database: number }
  /** Stores again what a process missed, and tells it. */
  repeat(to: string, after: number): Promise<void>
  /** Tells that the process stops. Nobody can ask it again, so what the bus may still have under way is stored first. */
  sayBye(): Promise<void>
}

/** Builds the sender of a process. `mayUseBus`: whether every other process receives it. */
export function buildFleetSender(deps: {
  id: string
  db: Database
  clock: Clock
  bus: Bus | undefined
  mayUseBus: () => boolean
}): FleetSender {
  const { id, db, clock, bus } = deps
  const history = buildMessageHistory()
  const askedAtMs = new Map<string, number>()
  const counts = { bus: 0, database: 0 }
  let lastCarried = 0
  let storedUntilMs = Number.NEGATIVE_INFINITY

  const senderOf = (isCarried: boolean): Sender => ({ process: id, isCarried, now: new Date(clock.now()) })

  async function sendStored(isCarried: boolean, messages: readonly OutgoingMessage[]): Promise<void> {
    await sendMessages(db, senderOf(isCarried), messages)
    counts.database += messages.length
  }

  /** Whether the bus has taken the messages. What it may have passed on nevertheless is known by its number. */
  async function pass(messages: readonly OutgoingMessage[]): Promise<boolean> {
    if (!bus?.isOpen() || !deps.mayUseBus() || clock.now() < storedUntilMs) return false
    const whole = messages.map(({ number, payload }) => writeText({ process: id, number, payload, isCarried: true }))
    const isLarge = (text: string) => Buffer.byteLength(text) > bus.limitBytes()
    const large = messages.filter((_, index) => isLarge(whole[index] ?? ''))
    if (large.length > 0) await storeMessages(db, senderOf(true), large)
    const texts = whole.map((text, index) => {
      const { number = 0 } = messages[index] ?? {}
      return isLarge(text) ? writeText({ process: id, number, payload: undefined, isCarried: true }) : text
    })
    try {
      await bus.send(texts)
      counts.bus += messages.length
      return true
    } catch {
      return false
    }
  }

  async function carry(messages: readonly OutgoingMessage[]): Promise<void> {
    history.add(messages, clock.now())
    try {
      if (!(await pass(messages))) await sendStored(true, messages)
      lastCarried = messages.at(-1)?.number ?? lastCarried
    } catch (error) {
      history.remove(messages)
      throw error
    }
  }

  const stored = buildLane((messages) => sendStored(false, messages))
  const carried = bus && buildLane(carry)

  async function storeKept(messages: readonly OutgoingMessage[]): Promise<void> {
    for (let start = 0; start < messages.length; start += BATCH_LIMIT)
      await storeMessages(db, senderOf(true), messages.slice(start, start + BATCH_LIMIT))
  }

  return {
    counts,
    lastCarried: () => lastCarried,
    send: (message) => (carried && CARRIED.has(message.kind) ? carried : stored)(message),
    repeat: async (to, after) => {
      const nowMs = clock.now()
      if (nowMs - (askedAtMs.get(to) ?? Number.NEGATIVE_INFINITY) < REPEAT_WINDOW_MS)
        storedUntilMs = nowMs + REPEAT_WINDOW_MS
      for (const [process, atMs] of askedAtMs) if (nowMs - atMs >= REPEAT_WINDOW_MS) askedAtMs.delete(process)
      askedAtMs.set(to, nowMs)
      const upTo = lastCarried
      const { first, messages } = history.read(after, upTo)
      await storeKept(messages)
      await stored({ kind: 'repeated', to, first, upTo })
    },
    sayBye: async () => {
      await storeKept(history.readSince(clock.now() - UNDER_WAY_MS))
      await stored({ kind: 'bye', carried: lastCarried })
    },
  }
}

/** Numbers messages and sends them in order; those that come while a batch is under way share the next one. */
function buildLane(pass: (messages: readonly OutgoingMessage[]) => Promise<void>) {
  let number = 0
  let isSending = false
  let waiting: { message: OutgoingMessage; settle: (failure?: { error: unknown }) => void }[] = []

  async function sendWaiting(): Promise<void> {
    isSending = true
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_LIMIT)
      waiting = waiting.slice(BATCH_LIMIT)
      const failure = await pass(batch.map(({ message }) => message)).then(
        () => undefined,
        (error: unknown) => ({ error }),
      )
      for (const { settle } of batch) settle(failure)
    }
    isSending = false
  }

  return (message: FleetMessage): Promise<void> => {
    number += 1
    const outgoing = { number, payload: JSON.stringify(message) }
    const sent = new Promise<void>((resolve, reject) => {
      waiting.push({ message: outgoing, settle: (failure) => (failure ? reject(failure.error) : resolve()) })
    })
    if (!isSending) void sendWaiting()
    return sent
  }
}

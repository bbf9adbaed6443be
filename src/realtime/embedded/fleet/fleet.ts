import type { Logger } from 'pino'
import type { Clock } from '../../../base/clock.ts'
import { buildListener } from '../../../postgres/connection/listener.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { type FleetNote, readNote, writeNote } from '../application/fleet-message.ts'
import type { FleetMessage } from '../application/state.ts'
import {
  FLEET_CHANNEL,
  fleetLock,
  type OtherProcess,
  type OutgoingMessage,
  readMessages,
  removeProcess,
  renewProcess,
  sendMessages,
  sweepFleet,
} from './fleet.store.ts'
import { buildPeerList, type Peer } from './fleet-peers.ts'

/** Interval of the heartbeat of a process, and of its read of the others. */
const BEAT_MS = 1_000

/** Every so many beats, old rows are deleted. */
const SWEEP_EVERY_BEATS = 20

/** Retention of messages for processes that missed them, and of rows of ended processes. */
const MESSAGE_KEPT_MS = 60_000
const PROCESS_KEPT_MS = 3_600_000

/** Maximum number of messages in one statement. */
const BATCH_LIMIT = 200

/** The processes that serve the same applications, joined through the database. */
export interface Fleet {
  /** The id of this process. */
  id: string
  /** Whether there are other processes. */
  hasPeers(): boolean
  /** Whether this is the oldest process: one of them reports for all. */
  isOldest(): boolean
  /** Sends to the others; resolves when they can read it, at once where there are none to read. Messages keep their order. */
  send(message: FleetMessage): Promise<void>
  /** Resolves when this process receives what the others send. */
  joined: Promise<void>
  /** Listens and sends heartbeats, until stopped. */
  run(): Promise<void>
  /** Announces the stop to the other processes, and stops. */
  stop(): Promise<void>
}

/** Options and callbacks of a fleet. */
export interface FleetOptions {
  id: string
  db: Database
  /** For LISTEN: PostgreSQL itself, or a pooler in session mode. */
  connectionString: string
  clock: Clock
  /** Whether the clock is trusted; otherwise nothing is deleted. Default: always. */
  isTrusted?: () => boolean
  logger: Logger
  /** Open connections of this process. */
  countConnections: () => number
  /** Runs for each message of another process, in the order of that process. */
  onMessage: (process: string, message: FleetMessage) => void
  /** Runs for a process that this one did not know. */
  onPeer: (process: string) => void
  /** Runs for a process that ended. */
  onPeerGone: (process: string) => void
  /** Runs when the database has answered a look for others. */
  onBeat: () => void
}

/** Builds a fleet. It joins in `run`. */
export function buildFleet(options: FleetOptions): Fleet {
  const { id, db, clock, logger } = options
  const peers = buildPeerList({ onPeer: options.onPeer, onPeerGone: options.onPeerGone })
  const sender = buildFleetSender(options)
  const joined = Promise.withResolvers<void>()
  const stopping = new AbortController()
  const incoming: (FleetNote | 'catch-up')[] = []
  let isReceiving = false
  let isLeaving = false

  const listener = buildListener({
    connectionString: options.connectionString,
    applicationName: 'signalbox realtime',
    clock,
    channels: [FLEET_CHANNEL],
    lock: fleetLock(id),
    onNotification: (_channel, text) => {
      const note = readNote(text)
      if (note && note.process !== id) receive(note)
    },
    onListening: () => receive('catch-up'),
    onLost: () => {},
    onError: (error) =>
      logger.warn({ err: error }, 'realtime listener not connected: see docs/operations.md, realtime processes'),
  })

  function receive(note: FleetNote | 'catch-up'): void {
    incoming.push(note)
    if (!isReceiving) void takeIncoming()
  }

  /** Handles what arrives one after the other, since some of it is read from the table. */
  async function takeIncoming(): Promise<void> {
    isReceiving = true
    for (let note = incoming.shift(); note !== undefined && !stopping.signal.aborted; note = incoming.shift()) {
      try {
        if (note === 'catch-up') await catchUp()
        else await take(note)
      } catch (error) {
        logger.warn({ err: error }, 'realtime message not read: see docs/operations.md, realtime processes')
      }
    }
    isReceiving = false
  }

  async function catchUp(): Promise<void> {
    await beat()
    for (const [process, peer] of peers.list()) await readUpTo(process, peer, Number.MAX_SAFE_INTEGER)
    joined.resolve()
  }

  async function take(note: FleetNote): Promise<void> {
    const peer = peers.meet(note.process)
    if (!peer) return
    peer.last ??= note.number - 1
    if (note.number <= peer.last) return
    const isNext = note.number === peer.last + 1
    if (!isNext || note.payload === undefined) return readUpTo(note.process, peer, note.number)
    peer.last = note.number
    handle(note.process, note.payload)
  }

  /** Handles the messages of a process that this one missed, or that did not fit into a notification. */
  async function readUpTo(process: string, peer: Peer, upTo: number): Promise<void> {
    for (const row of await readMessages(db, { process, after: peer.last ?? upTo, upTo })) {
      peer.last = row.number
      handle(process, row.payload)
    }
    if (upTo < Number.MAX_SAFE_INTEGER) peer.last = upTo
  }

  function handle(process: string, payload: string): void {
    const message = JSON.parse(payload) as FleetMessage
    if (message.kind === 'bye') peers.end(process)
    else options.onMessage(process, message)
  }

  async function beat(): Promise<void> {
    const others: OtherProcess[] = await renewProcess(db, {
      ...{ process: id, connections: options.countConnections() },
      now: new Date(clock.now()),
    })
    peers.see(others)
    options.onBeat()
  }

  async function beatUntilStopped(): Promise<void> {
    for (let beats = 1; !stopping.signal.aborted; beats += 1) {
      await clock.sleep(BEAT_MS, stopping.signal)
      if (stopping.signal.aborted) return
      const nowMs = clock.now()
      const before = { messages: new Date(nowMs - MESSAGE_KEPT_MS), processes: new Date(nowMs - PROCESS_KEPT_MS) }
      await beat().catch((error: unknown) =>
        logger.warn({ err: error }, 'realtime processes not looked up: see docs/operations.md, realtime processes'),
      )
      if (beats % SWEEP_EVERY_BEATS === 0 && options.isTrusted?.() !== false)
        await sweepFleet(db, before).catch(() => {})
    }
  }

  return {
    id,
    joined: joined.promise,
    hasPeers: () => peers.size() > 0,
    // The ids are in the order of their making (UUID version 7).
    isOldest: () => peers.list().every(([process]) => id < process),
    send: (message) => (!peers.hasReaders() || isLeaving ? Promise.resolve() : sender.send(message)),
    run: async () => {
      await Promise.all([listener.run(), beatUntilStopped()])
    },
    stop: async () => {
      // The last message: the others would treat a later one as that of a new process.
      isLeaving = true
      if (peers.size() > 0) await sender.send({ kind: 'bye' }).catch(() => {})
      stopping.abort()
      joined.resolve()
      await Promise.all([listener.stop(), removeProcess(db, id).catch(() => {})])
    },
  }
}

/** Numbers messages and sends them in order; those that come while a statement is in flight share the next one. */
function buildFleetSender({ id, db, clock }: FleetOptions) {
  let number = 0
  let isSending = false
  let waiting: { message: OutgoingMessage; settle: (error?: unknown) => void }[] = []

  async function sendWaiting(): Promise<void> {
    isSending = true
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_LIMIT)
      waiting = waiting.slice(BATCH_LIMIT)
      const from = { process: id, now: new Date(clock.now()) }
      const sent = sendMessages(
        db,
        from,
        batch.map((entry) => entry.message),
      )
      const failure = await sent.then(
        () => undefined,
        (error: unknown) => ({ error }),
      )
      for (const { settle } of batch) settle(failure?.error)
    }
    isSending = false
  }

  return {
    send: (message: FleetMessage): Promise<void> => {
      number += 1
      const payload = JSON.stringify(message)
      const outgoing = { number, payload, note: writeNote(id, number, payload) }
      const sent = new Promise<void>((resolve, reject) => {
        waiting.push({ message: outgoing, settle: (error) => (error === undefined ? resolve() : reject(error)) })
      })
      if (!isSending) void sendWaiting()
      return sent
    },
  }
}

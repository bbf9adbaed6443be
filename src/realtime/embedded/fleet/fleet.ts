import type { Logger } from 'pino'
import type { Clock } from '../../../base/clock.ts'
import type { OpenBus } from '../../../carriage/bus/bus.ts'
import { buildListener } from '../../../postgres/connection/listener.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { readNote } from '../application/fleet-message.ts'
import type { FleetMessage } from '../application/state.ts'
import { FLEET_CHANNEL, fleetLock, removeProcess, renewProcess, sweepFleet } from './fleet.store.ts'
import { buildFleetInbox } from './fleet-inbox.ts'
import { buildPeerList } from './fleet-peers.ts'
import { buildFleetSender } from './fleet-sender.ts'

const BEAT_MS = 1_000

const SWEEP_EVERY_BEATS = 20

/** Retention of messages for processes that missed them, and of rows of ended processes. */
const MESSAGE_KEPT_MS = 60_000
const PROCESS_KEPT_MS = 3_600_000

/** Counts of the messages between the processes since the start of this one. */
export interface FleetCounts {
  /** Sent by the bus, and through the database. */
  bus: number
  database: number
  /** Repetitions that this process asked for. */
  repeats: number
  /** Messages that could not be repeated. */
  losses: number
}

/**
 * The processes that serve the same applications, joined through the database. Where there is a bus, it carries events and
 * counts of subscribers, and the database repairs what it loses (docs/decisions/0064-realtime-over-nats.md).
 */
export interface Fleet {
  id: string
  hasPeers(): boolean
  /** Whether this is the oldest process: one of them reports for all. */
  isOldest(): boolean
  /** Sends to the others; resolves when they can read it, at once where there are none to read. Messages keep their order. */
  send(message: FleetMessage): Promise<void>
  /** Whether the bus is open for this process; undefined without one. */
  isOnBus(): boolean | undefined
  counts(): Readonly<FleetCounts>
  /** Resolves when this process receives what the others send. */
  joined: Promise<void>
  /** Listens and sends heartbeats, until stopped. */
  run(): Promise<void>
  /** Announces the stop to the other processes, and stops. */
  stop(): Promise<void>
}

export interface FleetOptions {
  id: string
  db: Database
  /** For LISTEN: PostgreSQL itself, or a pooler in session mode. */
  connectionString: string
  /** The bus; undefined: everything goes through the database. */
  openBus?: OpenBus | undefined
  clock: Clock
  /** Whether the clock is trusted; otherwise nothing is deleted. */
  isTrusted: () => boolean
  logger: Logger
  countConnections: () => number
  /** Runs for each message of another process, in the order of that process. */
  onMessage: (process: string, message: FleetMessage) => void
  onPeer: (process: string) => void
  onPeerGone: (process: string) => void
  /** Runs for a process of which messages are lost. */
  onLost: (process: string) => void
  /** Runs when the database has answered a check for others. */
  onBeat: () => void
}

/** Builds a fleet. It joins in `run`. */
export function buildFleet(options: FleetOptions): Fleet {
  const { id, db, clock, logger } = options
  const peers = buildPeerList({
    onPeer: (process) => {
      options.onPeer(process)
      if (bus?.isOpen()) tellBus(true)
    },
    onPeerGone: options.onPeerGone,
  })
  const joined = Promise.withResolvers<void>()
  const stopping = new AbortController()
  let isListening = false
  let isLeaving = false

  const bus = options.openBus?.(id, {
    onText: (text) => {
      const note = readNote(text)
      if (note?.isCarried && note.process !== id) inbox.takeCarried(note)
    },
    onChange: (isOn) => {
      if (peers.hasReaders()) tellBus(isOn)
      // The heartbeat tells it to those who join. Before this process listens it asks for nobody: it would miss the answers.
      if (isListening) inbox.catchUp()
    },
  })
  const sender = buildFleetSender({ id, db, clock, bus, mayUseBus: peers.areOnBus })
  const inbox = buildFleetInbox({
    ...options,
    peers,
    beat,
    ...{ send: sender.send, repeat: sender.repeat, onCaughtUp: joined.resolve },
  })
  const listener = buildListener({
    connectionString: options.connectionString,
    applicationName: 'signalbox realtime',
    clock,
    channels: [FLEET_CHANNEL],
    lock: fleetLock(id),
    onNotification: (_channel, text) => {
      const note = readNote(text)
      if (note && note.process !== id) inbox.takeNote(note)
    },
    onListening: () => {
      isListening = true
      inbox.catchUp()
    },
    onLost: () => {},
    onError: (error) =>
      logger.warn({ err: error }, 'realtime listener not connected: see docs/operations.md, realtime processes'),
  })

  /** Without it the others learn it from the next heartbeat. */
  function tellBus(isOn: boolean): void {
    void sender.send({ kind: 'bus', isOn }).catch(() => {})
  }

  async function beat(): Promise<void> {
    const state = { isOnBus: bus?.isOpen() ?? false, carried: sender.lastCarried() }
    const connections = options.countConnections()
    peers.see(await renewProcess(db, { process: id, now: new Date(clock.now()), connections, ...state }))
    inbox.look()
    options.onBeat()
  }

  async function beatUntilStopped(): Promise<void> {
    for (let beats = 1; !stopping.signal.aborted; beats += 1) {
      await clock.sleep(BEAT_MS, stopping.signal)
      if (stopping.signal.aborted) return
      try {
        await beat()
        if (beats % SWEEP_EVERY_BEATS === 0 && options.isTrusted()) await sweep()
      } catch (error) {
        logger.warn({ err: error }, 'realtime processes not looked up: see docs/operations.md, realtime processes')
      }
    }
  }

  async function sweep(): Promise<void> {
    const nowMs = clock.now()
    await sweepFleet(db, {
      messages: new Date(nowMs - MESSAGE_KEPT_MS),
      processes: new Date(nowMs - PROCESS_KEPT_MS),
    })
  }

  return {
    id,
    joined: joined.promise,
    hasPeers: () => peers.size() > 0,
    // The ids are in the order of their making (UUID version 7).
    isOldest: () => peers.list().every(([process]) => id < process),
    isOnBus: () => bus?.isOpen(),
    counts: () => ({ ...sender.counts, ...inbox.counts }),
    send: (message) => (!peers.hasReaders() || isLeaving ? Promise.resolve() : sender.send(message)),
    run: async () => {
      await Promise.all([listener.run(), beatUntilStopped(), bus?.run()])
    },
    stop: async () => {
      // The last message: the others would treat a later one as that of a new process.
      isLeaving = true
      if (peers.size() > 0) await sender.sayBye().catch(() => {})
      stopping.abort()
      inbox.stop()
      joined.resolve()
      await Promise.all([listener.stop(), bus?.stop(), removeProcess(db, { process: id }).catch(() => {})])
    },
  }
}

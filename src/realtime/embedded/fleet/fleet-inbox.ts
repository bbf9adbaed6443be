import type { Logger } from 'pino'
import type { Database } from '../../../postgres/statement/database.ts'
import type { FleetNote } from '../application/fleet-message.ts'
import type { FleetMessage } from '../application/state.ts'
import { readMessages } from './fleet.store.ts'
import type { Peer, PeerList } from './fleet-peers.ts'

/** Limits of what is held while a repetition is awaited; what is beyond them is requested again. */
const HELD_LIMIT = 10_000
const HELD_LIMIT_BYTES = 16_777_216

/** Looks after which a repetition is requested again. */
const LOOKS_UNTIL_REPEATED = 3

/** Handles what other processes send, in the order of each. */
export interface FleetInbox {
  /** Takes a notification of the database. */
  takeNote(note: FleetNote): void
  /** Takes a text of the bus. Processes that the database has not named are ignored: others share the servers. */
  takeCarried(note: FleetNote): void
  /** Reads what was missed, after the database was asked for the other processes. */
  catchUp(): void
  /** Requests what did not arrive since the previous look. */
  look(): void
  /** Repetitions that were requested, and messages that no repetition had. */
  counts: { repeats: number; losses: number }
  stop(): void
}

/** Dependencies of an inbox. */
export interface FleetInboxDeps {
  id: string
  db: Database
  logger: Logger
  peers: PeerList
  /** Asks the database for the other processes. */
  beat: () => Promise<void>
  send: (message: FleetMessage) => Promise<void>
  /** Repeats for another process what it missed. */
  repeat: (to: string, after: number) => Promise<void>
  onMessage: (process: string, message: FleetMessage) => void
  /** Runs when messages of a process are lost: its state is to be asked for. */
  onLost: (process: string) => void
  onCaughtUp: () => void
}

/** Builds the inbox of a process. */
export function buildFleetInbox(deps: FleetInboxDeps): FleetInbox {
  const { id, db, logger, peers } = deps
  const counts = { repeats: 0, losses: 0 }
  const incoming: (() => Promise<void>)[] = []
  let isReceiving = false
  let isStopped = false

  function receive(work: () => Promise<void>): void {
    if (isStopped) return
    incoming.push(work)
    if (!isReceiving) void takeIncoming()
  }

  /** Handles what arrives one after the other, since some of it is read from the table. */
  async function takeIncoming(): Promise<void> {
    isReceiving = true
    for (let work = incoming.shift(); work !== undefined && !isStopped; work = incoming.shift()) {
      try {
        await work()
      } catch (error) {
        logger.warn({ err: error }, 'realtime message not read: see docs/operations.md, realtime processes')
      }
    }
    isReceiving = false
  }

  async function catchUp(): Promise<void> {
    await deps.beat()
    for (const [process, peer] of peers.list()) await readStored(process, peer, Number.MAX_SAFE_INTEGER)
    deps.onCaughtUp()
  }

  async function takeStored(note: FleetNote): Promise<void> {
    const peer = peers.meet(note.process)
    if (!peer) return
    peer.last ??= note.number - 1
    if (note.number <= peer.last) return
    const isNext = note.number === peer.last + 1
    if (!isNext || note.payload === undefined) return readStored(note.process, peer, note.number)
    peer.last = note.number
    await handle(note.process, peer, note.payload)
  }

  /** Handles the messages of a process that this one missed, or that did not fit into a notification. */
  async function readStored(process: string, peer: Peer, upTo: number): Promise<void> {
    const range = { process, isCarried: false, after: peer.last ?? upTo, upTo }
    for (const row of await readMessages(db, range)) {
      peer.last = row.number
      await handle(process, peer, row.payload)
    }
    if (upTo < Number.MAX_SAFE_INTEGER) peer.last = upTo
  }

  async function takeCarried(note: FleetNote): Promise<void> {
    const peer = peers.find(note.process)
    if (!peer) return
    const { carried } = peer
    carried.last ??= note.number - 1
    if (note.number <= carried.last) return
    if (carried.repair) return hold(peer, note)
    if (note.number === carried.last + 1 && note.payload !== undefined) {
      carried.last = note.number
      return handle(note.process, peer, note.payload)
    }
    await readCarried(note.process, peer, note.number)
    if (carried.last >= note.number) return
    beginRepair(note.process, peer)
    hold(peer, note)
  }

  /** Handles what the table has of the messages that the bus did not carry, as far as none is missing before it. */
  async function readCarried(process: string, peer: Peer, upTo: number): Promise<void> {
    const { carried } = peer
    for (const row of await readMessages(db, { process, isCarried: true, after: carried.last ?? upTo, upTo })) {
      if (row.number !== (carried.last ?? 0) + 1) return
      carried.last = row.number
      await handle(process, peer, row.payload)
    }
  }

  function hold({ carried: { repair } }: Peer, note: FleetNote): void {
    const bytes = note.payload?.length ?? 0
    if (!repair || repair.held.length >= HELD_LIMIT || repair.bytes + bytes > HELD_LIMIT_BYTES) return
    repair.held.push(note)
    repair.bytes += bytes
  }

  function beginRepair(process: string, peer: Peer): void {
    peer.carried.repair = { looks: 0, held: [], bytes: 0 }
    askAgain(process, peer)
  }

  function askAgain(process: string, { carried }: Peer): void {
    counts.repeats += 1
    // A request that fails is made again by a later look.
    void deps.send({ kind: 'repeat', to: process, after: carried.last ?? 0 }).catch(() => {})
  }

  async function takeRepeated(
    process: string,
    peer: Peer,
    { first, upTo }: Extract<FleetMessage, { kind: 'repeated' }>,
  ): Promise<void> {
    const { carried } = peer
    const last = carried.last ?? upTo
    for (const row of await readMessages(db, { process, isCarried: true, after: last, upTo })) {
      carried.last = row.number
      await handle(process, peer, row.payload)
    }
    carried.last = Math.max(carried.last ?? 0, upTo)
    if (first > last + 1 && upTo > last) {
      counts.losses += first - last - 1
      logger.warn(
        { process, messages: first - last - 1 },
        'realtime messages lost: see docs/operations.md, realtime bus',
      )
      deps.onLost(process)
    }
    const held = carried.repair?.held ?? []
    carried.repair = undefined
    for (const note of held) await takeCarried(note)
  }

  async function handle(process: string, peer: Peer, payload: string): Promise<void> {
    const message = JSON.parse(payload) as FleetMessage
    switch (message.kind) {
      case 'bye':
        await readCarried(process, peer, message.carried)
        return peers.end(process)
      case 'bus':
        peer.isOnBus = message.isOn
        return
      case 'repeat':
        if (message.to !== id) return
        return void deps
          .repeat(process, message.after)
          .catch((error: unknown) =>
            logger.warn({ err: error }, 'realtime message not sent: see docs/operations.md, realtime processes'),
          )
      case 'repeated':
        return message.to === id ? takeRepeated(process, peer, message) : undefined
      default:
        deps.onMessage(process, message)
    }
  }

  /** What was sent before the previous look has arrived, or is lost. */
  function lookAt(process: string, peer: Peer): void {
    const { carried } = peer
    if (carried.repair) {
      carried.repair.looks += 1
      if (carried.repair.looks % LOOKS_UNTIL_REPEATED === 0) askAgain(process, peer)
    } else if (carried.last !== undefined && carried.seen !== undefined && carried.last < carried.seen)
      beginRepair(process, peer)
    // Before the first look the process was not known here, so nothing of then is missing.
    carried.last ??= carried.seen
    carried.seen = peer.carriedSent
  }

  return {
    counts,
    takeNote: (note) =>
      receive(async () => {
        if (!note.isCarried) return takeStored(note)
        if (peers.meet(note.process)) await takeCarried(note)
      }),
    takeCarried: (note) => receive(() => takeCarried(note)),
    catchUp: () => receive(catchUp),
    look: () =>
      receive(async () => {
        for (const [process, peer] of peers.list()) lookAt(process, peer)
      }),
    stop: () => {
      isStopped = true
    },
  }
}

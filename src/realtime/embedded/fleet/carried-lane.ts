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

/** Handles the messages that the bus may carry, in the order of each process, and repairs what it lost. */
export interface CarriedLane {
  /** Takes a message of the bus or of the database. */
  take(note: FleetNote): Promise<void>
  /** Handles what the table has of those that the bus did not carry, as far as none is missing before it. */
  read(process: string, peer: Peer, upTo: number): Promise<void>
  /** Handles what a process has repeated. */
  takeRepeated(process: string, peer: Peer, message: Extract<FleetMessage, { kind: 'repeated' }>): Promise<void>
  /** Messages sent before the previous look have arrived, or are lost. */
  look(process: string, peer: Peer): void
  /** Repetitions that were requested, and messages that no repetition had. */
  counts: { repeats: number; losses: number }
}

export interface CarriedLaneDeps {
  db: Database
  logger: Logger
  peers: PeerList
  send: (message: FleetMessage) => Promise<void>
  handle: (process: string, peer: Peer, payload: string) => Promise<void>
  onLost: (process: string) => void
}

/** Builds the lane of a process. */
export function buildCarriedLane(deps: CarriedLaneDeps): CarriedLane {
  const { db, logger, peers, handle } = deps
  const counts = { repeats: 0, losses: 0 }

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

  return { take: takeCarried, read: readCarried, takeRepeated, look: lookAt, counts }
}

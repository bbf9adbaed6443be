import type { Logger } from 'pino'
import type { Database } from '../../../postgres/statement/database.ts'
import type { FleetNote } from '../application/fleet-message.ts'
import type { FleetMessage } from '../application/state.ts'
import { buildCarriedLane } from './carried-lane.ts'
import { readMessages } from './fleet.store.ts'
import type { Peer, PeerList } from './fleet-peers.ts'

export interface FleetInbox {
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
  const incoming: (() => Promise<void>)[] = []
  const lane = buildCarriedLane({ ...deps, handle })
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

  async function handle(process: string, peer: Peer, payload: string): Promise<void> {
    const message = JSON.parse(payload) as FleetMessage
    switch (message.kind) {
      case 'bye':
        await lane.read(process, peer, message.carried)
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
        return message.to === id ? lane.takeRepeated(process, peer, message) : undefined
      default:
        deps.onMessage(process, message)
    }
  }

  return {
    counts: lane.counts,
    takeNote: (note) =>
      receive(async () => {
        if (!note.isCarried) return takeStored(note)
        if (peers.meet(note.process)) await lane.take(note)
      }),
    takeCarried: (note) => receive(() => lane.take(note)),
    catchUp: () => receive(catchUp),
    look: () =>
      receive(async () => {
        for (const [process, peer] of peers.list()) lane.look(process, peer)
      }),
    stop: () => {
      isStopped = true
    },
  }
}

import type { FleetNote } from '../application/fleet-message.ts'
import type { OtherProcess } from './fleet.store.ts'

/** Checks without its lock after which a process has ended: one may fall between two of its connections. */
const LOOKS_WITHOUT_LOCK = 2

/** Checks without a sign of life after which a process has ended, although its connection is still open. */
const LOOKS_WITHOUT_BEAT = 15

/** Checks for which messages are written for a process considered ended: if it runs, it reads them. */
const LOOKS_UNTIL_GIVEN_UP = 60

export interface Peer {
  /** The number of its last message that was handled; undefined before the first. */
  last: number | undefined
  seenAtMs: number
  looksWithoutBeat: number
  looksWithoutLock: number
  /** Whether it receives what is sent by the bus. */
  isOnBus: boolean
  /** The number of the last message that it sent, of those that the bus may carry, as the last look found it. */
  carriedSent: number | undefined
  carried: CarriedPart
}

/** Known state of the messages of a process that the bus may carry. */
export interface CarriedPart {
  /** The number of the last one that was handled; undefined before the first. */
  last: number | undefined
  /** The last number at the previous look: until the next one it must have arrived. */
  seen: number | undefined
  repair: Repair | undefined
}

/** A repetition that a process was asked for. */
export interface Repair {
  looks: number
  /** Messages that came meanwhile. */
  held: FleetNote[]
  bytes: number
}

export interface PeerList {
  size(): number
  /** Whether a message is needed: there are other processes, or one recently silent may return. */
  hasReaders(): boolean
  /** Whether every other process receives what is sent by the bus. */
  areOnBus(): boolean
  list(): [process: string, peer: Peer][]
  /** A process that is known already. */
  find(process: string): Peer | undefined
  /** The sender of a message, which may be new here; undefined for one that has announced its stop. */
  meet(process: string): Peer | undefined
  /** Classifies the database's state of the others. Clocks of different machines are not compared. */
  see(others: readonly OtherProcess[]): void
  /** Removes a process that announced its stop. */
  end(process: string): void
}

/** Builds an empty list. */
export function buildPeerList(callbacks: {
  onPeer: (process: string) => void
  onPeerGone: (process: string) => void
}): PeerList {
  const peers = new Map<string, Peer>()
  /** Last reports of processes that fell silent: their connections may live on. */
  const silent = new Map<string, number>()
  /** The last message of each process considered ended: if it is running, reading continues there. */
  const lasts = new Map<string, { stored: number | undefined; carried: number | undefined }>()
  /** Checks since a process was considered ended. */
  const missed = new Map<string, number>()
  /** Processes that announced their stop; the database has them a moment longer. */
  const ended = new Set<string>()

  function add(process: string, seenAtMs: number): Peer {
    const known = lasts.get(process)
    const peer: Peer = {
      ...{
        last: known?.stored,
        seenAtMs,
        looksWithoutBeat: 0,
        looksWithoutLock: 0,
        isOnBus: false,
        carriedSent: undefined,
      },
      carried: { last: known?.carried, seen: undefined, repair: undefined },
    }
    peers.set(process, peer)
    missed.delete(process)
    callbacks.onPeer(process)
    return peer
  }

  function drop(process: string): void {
    const peer = peers.get(process)
    if (!peer) return
    peers.delete(process)
    lasts.set(process, { stored: peer.last, carried: peer.carried.last })
    if (!ended.has(process)) missed.set(process, 0)
    callbacks.onPeerGone(process)
  }

  function look(peer: Peer, other: OtherProcess | undefined): void {
    peer.looksWithoutLock = other?.isListening ? 0 : peer.looksWithoutLock + 1
    peer.looksWithoutBeat = other && other.seenAtMs !== peer.seenAtMs ? 0 : peer.looksWithoutBeat + 1
    if (other) peer.seenAtMs = other.seenAtMs
  }

  return {
    size: () => peers.size,
    hasReaders: () => peers.size > 0 || missed.size > 0,
    areOnBus: () => [...peers.values()].every(({ isOnBus }) => isOnBus),
    list: () => [...peers],
    find: (process) => peers.get(process),
    meet: (process) => (ended.has(process) ? undefined : (peers.get(process) ?? add(process, 0))),
    see: (others) => {
      const byId = new Map(others.map((other) => [other.id, other]))
      for (const [process, peer] of [...peers]) {
        look(peer, byId.get(process))
        if (peer.looksWithoutBeat >= LOOKS_WITHOUT_BEAT) silent.set(process, peer.seenAtMs)
        if (peer.looksWithoutLock >= LOOKS_WITHOUT_LOCK || silent.has(process)) drop(process)
      }
      for (const [process, looks] of missed)
        if (looks < LOOKS_UNTIL_GIVEN_UP) missed.set(process, looks + 1)
        else missed.delete(process)
      for (const [process, seenAtMs] of silent) if (byId.get(process)?.seenAtMs !== seenAtMs) silent.delete(process)
      for (const kept of [ended, lasts]) for (const process of kept.keys()) if (!byId.has(process)) kept.delete(process)
      // A row without a lock belongs to a process that ended, or is not yet listening.
      for (const other of others)
        if (other.isListening && ![peers, silent, ended].some((item) => item.has(other.id)))
          add(other.id, other.seenAtMs)
      for (const [process, peer] of peers) {
        const other = byId.get(process)
        peer.isOnBus = other?.isOnBus ?? peer.isOnBus
        peer.carriedSent = other?.carried ?? peer.carriedSent
      }
    },
    end: (process) => {
      ended.add(process)
      drop(process)
    },
  }
}

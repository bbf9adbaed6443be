import type { Clock } from '../../base/clock.ts'

/** Interval between checks of all servers while connections are open, and while no primary is known. */
const LOOK_EVERY_MS = 1_000
const LOOK_AGAIN_MS = 200

/** Wait for the other servers once the primary, or another one, has answered. */
const OTHERS_LIMIT_MS = 300

/** Answer of a server that takes changes, or could. */
export interface PrimaryAnswer {
  /** Its sessions begin read-only (`default_transaction_read_only`). */
  isReadOnly: boolean
  /** The number of its timeline: a promotion raises it, so the larger one is the later primary. */
  timeline: number
}

/** Asks one server. `standby` takes no changes. Rejects when it does not answer in time. */
export interface ServerProbe {
  ask(): Promise<PrimaryAnswer | 'standby'>
  close(): void
}

/** An open connection to a server. */
export interface ServerConnection {
  host: string
  end(): void
}

/** Choice of the primary among the servers of one connection string. */
export interface PrimaryChoice {
  /** Begins a use, until the returned function is called: while there is one, the servers are watched. */
  use(): () => void
  /** The connection string of the primary. Looks for it when none is known; rejects when none is found. */
  find(): Promise<string>
  isPrimary(host: string): boolean
  /** Reports that a connection to a server failed, or that it is a standby: the next caller checks again. */
  distrust(host: string): void
  /** Registers a connection, which is ended when another server is the primary. Returns its removal. */
  enter(connection: ServerConnection): () => void
  countSwitches(): number
  /** Calls `listen` when another server is the primary. Returns the removal. */
  onSwitch(listen: () => void): () => void
}

/** An answer with the server that gave it. */
export interface Candidate extends PrimaryAnswer {
  host: string
}

/** The primary: the latest timeline not in recovery, so none that was replaced; undefined if all are older. */
export function choosePrimary(candidates: readonly Candidate[], known: number): Candidate | undefined {
  return candidates
    .filter(({ timeline }) => timeline >= known)
    .toSorted((left, two) => two.timeline - left.timeline || Number(left.isReadOnly) - Number(two.isReadOnly))[0]
}

/**
 * Builds the choice between servers, which are asked at the same time. A larger timeline decides at once. Otherwise the
 * others have `OTHERS_LIMIT_MS` to answer: a primary that was replaced may answer first.
 */
export function buildPrimaryChoice(
  hosts: readonly string[],
  { buildProbe, clock }: { buildProbe: (host: string) => ServerProbe; clock: Pick<Clock, 'sleep'> },
): PrimaryChoice {
  const probes = new Map<string, ServerProbe>()
  const connections = new Set<ServerConnection>()
  const listeners = new Set<() => void>()
  let primary: string | undefined
  /** The last found primary, also while it is distrusted. */
  let lastPrimary: string | undefined
  let switches = 0
  let known = 0
  let uses = 0
  let watching: AbortController | undefined
  let looking: Promise<string> | undefined

  function become({ host, timeline }: Candidate): string {
    const isOther = lastPrimary !== undefined && lastPrimary !== host
    known = timeline
    primary = host
    lastPrimary = host
    for (const connection of connections) if (connection.host !== host) connection.end()
    if (isOther) switches += 1
    if (isOther) for (const listen of listeners) listen()
    return host
  }

  function ask(host: string): Promise<PrimaryAnswer | 'standby'> {
    const probe = probes.get(host) ?? buildProbe(host)
    probes.set(host, probe)
    return probe.ask()
  }

  async function lookOnce(): Promise<string> {
    const candidates: Candidate[] = []
    let standbys = 0
    let failure: unknown
    const decided = Promise.withResolvers<void>()
    const over = new AbortController()
    const asked = hosts.map(async (host) => {
      try {
        const answer = await ask(host)
        if (answer === 'standby') standbys += 1
        else candidates.push({ host, ...answer })
        if (answer === 'standby' && host === primary) primary = undefined
        if (answer !== 'standby' && known > 0 && answer.timeline > known) decided.resolve()
        if (lastPrimary !== undefined || candidates.length > 0)
          void clock.sleep(OTHERS_LIMIT_MS, over.signal).then(decided.resolve)
      } catch (error) {
        failure ??= error
      }
    })
    await Promise.race([Promise.all(asked), decided.promise])
    over.abort('over')
    const chosen = choosePrimary(candidates, known)
    if (chosen) return become(chosen)
    if (standbys + candidates.length === 0) throw failure
    throw Object.assign(new Error('no server of the connection string is a primary'), { code: '25006' })
  }

  function look(): Promise<string> {
    looking ??= lookOnce().finally(() => {
      looking = undefined
    })
    return looking
  }

  async function watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(primary === undefined ? LOOK_AGAIN_MS : LOOK_EVERY_MS, signal)
      // The next caller gets the failure.
      if (!signal.aborted) await look().catch(() => undefined)
    }
  }

  function endUse(): void {
    uses -= 1
    if (uses > 0) return
    watching?.abort('over')
    watching = undefined
    for (const probe of probes.values()) probe.close()
    probes.clear()
  }

  return {
    use: () => {
      uses += 1
      let isOver = false
      if (!watching) {
        watching = new AbortController()
        void watch(watching.signal)
      }
      return () => {
        if (!isOver) endUse()
        isOver = true
      }
    },
    find: async () => primary ?? (await look()),
    isPrimary: (host) => host === primary,
    distrust: (host) => {
      if (host === primary) primary = undefined
    },
    enter: (connection) => {
      connections.add(connection)
      return () => connections.delete(connection)
    },
    countSwitches: () => switches,
    onSwitch: (listen) => {
      listeners.add(listen)
      return () => listeners.delete(listen)
    },
  }
}

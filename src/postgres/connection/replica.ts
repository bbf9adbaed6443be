import type pg from 'pg'

/** First and maximum pause between checks whether the replica has reached the position of the primary. */
const FIRST_PAUSE_MS = 2
const LAST_PAUSE_MS = 50

/** Time after which one caller tries a suspended replica again, and the wait of that caller. */
const RETRY_MS = 1_000
const RETRY_WAIT_MS = 50

/** Timeout of the query for the position of a replica: a hanging one must not hold its readers. */
const ANSWER_LIMIT_MS = 1_000

/** Flushed position of the primary; it covers every change committed before. */
export interface PrimaryPosition {
  /** Of the write-ahead log, as PostgreSQL writes it: `16/B374D848`. */
  lsn: string
  /** The timeline, as in the names of its files: 8 hexadecimal digits. */
  timeline: string
}

/**
 * `used`: it serves reads. `primary`: the same, and it is the primary, as after a failover. `behind`: it lacks changes of
 * the primary for longer than the limit. `unproven`: it follows another timeline, or none, or its user may not read which
 * one. `unavailable`: it does not answer.
 */
export type ReplicaStatus = 'used' | 'primary' | 'behind' | 'unproven' | 'unavailable'

/** Report of the choice, for metrics and `/readyz`. */
export interface ReplicaState {
  status: ReplicaStatus
  /** Bytes of the write-ahead log that it lacked at the last check; undefined before the first. */
  lagBytes: number | undefined
  /** Number of connections given to reads. */
  reads: { replica: number; primary: number }
}

/** Gives reads a connection to the replica, or to the primary. */
export interface ReplicaChoice {
  connect(): Promise<pg.PoolClient>
  state(): ReplicaState
}

export interface ReplicaDeps {
  readPosition(): Promise<PrimaryPosition>
  connectReplica(): Promise<pg.PoolClient>
  connectPrimary(): Promise<pg.PoolClient>
  /** Time for which a read waits for the replica (`DATABASE_READ_LAG_MS`). */
  lagLimitMs: number
  monotonicMs(): number
  sleep(ms: number): Promise<void>
  onStatus(status: ReplicaStatus): void
}

/** A promoted server has its own timeline; a standby its source's, which monitoring roles alone may read. */
const STANDING = `select is_standby, replayed::text as replayed, greatest(0, $1::pg_lsn - replayed)::float8 as lag,
    case when is_standby then (select upper(lpad(to_hex(received_tli), 8, '0')) from pg_stat_wal_receiver)
      else left(pg_walfile_name(replayed), 8) end as timeline
  from (select pg_is_in_recovery() as is_standby,
    case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end as replayed) s`

interface Standing {
  is_standby: boolean
  replayed: string | null
  lag: number | null
  timeline: string | null
}

/**
 * Builds the choice. A connection to the replica is given only when its server has replayed, on the timeline of the
 * primary, what the primary had flushed when the connection was asked for: such a read sees every change that was
 * committed before it, of any caller through any process. The server of each connection is asked over that connection,
 * so an address may lead to several replicas.
 */
export function buildReplicaChoice(deps: ReplicaDeps): ReplicaChoice {
  const readPosition = shareNext(deps.readPosition)
  /** The last known standing of the server of each connection. */
  const known = new WeakMap<pg.PoolClient, { lsn: bigint; timeline: string; used: 'used' | 'primary' }>()
  const reads = { replica: 0, primary: 0 }
  let status: ReplicaStatus = 'used'
  let retryAtMs = Number.NEGATIVE_INFINITY
  let isTrying = false
  let lagBytes: number | undefined

  function note(next: ReplicaStatus): void {
    if (!isUsable(next)) retryAtMs = deps.monotonicMs() + RETRY_MS
    if (next === status) return
    status = next
    deps.onStatus(next)
  }

  async function look(client: pg.PoolClient, position: PrimaryPosition): Promise<ReplicaStatus> {
    const last = known.get(client)
    if (last && last.timeline === position.timeline && last.lsn >= parseLsn(position.lsn)) return last.used
    const { rows } = await client.query<Standing>({
      ...{ name: 'replica-standing', text: STANDING, values: [position.lsn] },
      ...{ query_timeout: ANSWER_LIMIT_MS },
    })
    const { is_standby: isStandby = true, replayed = null, lag = null, timeline = null } = rows[0] ?? {}
    lagBytes = lag ?? undefined
    if (replayed === null || timeline !== position.timeline) return 'unproven'
    const used = isStandby ? 'used' : 'primary'
    known.set(client, { lsn: parseLsn(replayed), timeline, used })
    return parseLsn(replayed) >= parseLsn(position.lsn) ? used : 'behind'
  }

  /** A connection to a replica that has the position, or none and the reason. */
  async function tryReplica(patienceMs: number): Promise<{ found: ReplicaStatus; client?: pg.PoolClient }> {
    const position = await readPosition()
    const client = await deps.connectReplica()
    try {
      const untilMs = deps.monotonicMs() + patienceMs
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LAST_PAUSE_MS, pauseMs * 2)) {
        const found = await look(client, position)
        if (isUsable(found)) return { found, client }
        if (found !== 'behind' || deps.monotonicMs() >= untilMs) {
          client.release()
          return { found }
        }
        await deps.sleep(pauseMs)
      }
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  async function chooseReplica(): Promise<pg.PoolClient | undefined> {
    const isAside = !isUsable(status)
    if (isAside && (isTrying || deps.monotonicMs() < retryAtMs)) return undefined
    isTrying ||= isAside
    try {
      const { found, client } = await tryReplica(isAside ? Math.min(RETRY_WAIT_MS, deps.lagLimitMs) : deps.lagLimitMs)
      note(found)
      return client
    } catch {
      // The pool reports its errors. If the primary does not answer, its own connection fails next.
      note('unavailable')
      return undefined
    } finally {
      if (isAside) isTrying = false
    }
  }

  return {
    connect: async () => {
      const client = await chooseReplica()
      reads[client ? 'replica' : 'primary'] += 1
      return client ?? deps.connectPrimary()
    },
    state: () => ({ status, lagBytes, reads: { ...reads } }),
  }
}

/** Whether reads use a server of this status. Pure. */
export const isUsable = (status: ReplicaStatus): boolean => status === 'used' || status === 'primary'

/** A position as a number. Pure. */
export function parseLsn(lsn: string): bigint {
  const [high = '', low = ''] = lsn.split('/')
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`)
}

/** Callers share the run that begins after their call: at most one runs, and one waits. */
function shareNext<Result>(run: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | undefined
  let next: Promise<Result> | undefined
  const start = (): Promise<Result> => {
    next = undefined
    const started = run().finally(() => {
      if (running === started) running = undefined
    })
    running = started
    return started
  }
  return () => {
    if (!running) return start()
    next ??= running.then(start, start)
    return next
  }
}

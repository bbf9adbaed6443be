import pino from 'pino'
import { buildDispatcher } from '../../../src/delivery/dispatcher/dispatcher.ts'
import {
  type Claim,
  type ClaimRequest,
  type DeliveryPolicy,
  listBlocked,
  type ReclaimRequest,
  type Room,
  type Work,
} from '../../../src/delivery/policy.ts'
import { buildManualClock } from '../run/manual-clock.ts'

interface Row {
  id: string
  group: string
  dueAtMs: number
}

/**
 * A running dispatcher on a queue in memory, whose attempts end when the test says so. `asked` counts what it asks of the
 * queue; `await using` stops it.
 */
export function openDispatcher({ concurrency = 16, perGroup = 16, isEnabled = true, hasPeers = false } = {}) {
  const clock = buildManualClock()
  const asked = { claims: 0, dueTimes: 0 }
  let rows: Row[] = []
  /** Rows that no claim gets, though they are due: another worker has locked them. */
  const locked = new Set<string>()
  const attempts = new Map<string, { end: () => void; fail: (error: Error) => void }>()
  const released: { id: string; inMs: number }[] = []
  /** Other workers that are gone, and the claims that are found of a worker. */
  const lost = { workers: [] as string[], claims: new Map<string, Claim[]>() }
  const reclaims: ReclaimRequest[] = []
  const settled: string[] = []
  let rooms = 0
  let isTrusted = true
  /** State of the latch: whether the dispatcher had to wait. */
  let hasRested = false
  let renewals = 0
  let claimFailure: Error | undefined
  /** Gate that a claim waits for. */
  let held: Promise<void> | undefined
  const interrupted: string[] = []
  const isBlocked = (room: Room | undefined, { group }: Row) => room !== undefined && listBlocked(room).includes(group)
  const claim = async (request: ClaimRequest) => {
    asked.claims += 1
    await held
    if (claimFailure) throw claimFailure
    const counts = new Map(request.inFlight)
    let { fastSlots, slowSlots } = request
    const taken = rows.filter((row) => {
      if (row.dueAtMs > request.now.getTime() || locked.has(row.id)) return false
      const count = counts.get(row.group) ?? 0
      const isSlow = request.slowGroups.includes(row.group)
      if (count >= request.perGroup || (isSlow ? slowSlots : fastSlots) <= 0) return false
      counts.set(row.group, count + 1)
      if (isSlow) slowSlots -= 1
      else fastSlots -= 1
      return true
    })
    rows = rows.filter((row) => !taken.includes(row))
    return taken.map(({ id, group }): Work => ({ id, group, fence: 1 }))
  }
  const nextDueAt = async (room?: Room) => {
    asked.dueTimes += 1
    const times = rows.filter((row) => !isBlocked(room, row)).map(({ dueAtMs }) => dueAtMs)
    return times.length === 0 ? null : new Date(Math.min(...times))
  }
  const policy: DeliveryPolicy<Work, Claim, undefined> = {
    name: 'test',
    concurrency,
    perGroup,
    queue: {
      claim,
      nextDueAt,
      settle: async (ended) => {
        settled.push(...ended.map(({ id }) => id))
        return undefined
      },
      release: async (claims, now, dueAt = now) => {
        released.push(...claims.map(({ id }) => ({ id, inMs: dueAt.getTime() - clock.now() })))
      },
      reclaim: async (request) => {
        reclaims.push(request)
        return lost.claims.get(request.workerId) ?? []
      },
    },
    buildRouting: () => ({ matched: '', written: { name: '', text: '', values: [] } }),
    readWork: (json) => json as Work,
    attempt: ({ id, fence }, signal) => {
      signal.addEventListener('abort', () => interrupted.push(id))
      return new Promise((resolve, reject) => attempts.set(id, { end: () => resolve({ id, fence }), fail: reject }))
    },
    onSettled: () => {},
  }
  const renew = async () => {
    renewals += 1
    return lost.workers
  }
  const lease = {
    renew,
    isTrusted: () => isTrusted,
    hasPeers: () => hasPeers,
    gone: () => lost.workers,
    end: async () => {},
  }
  const common = { clock, rest: async () => {}, logger: pino({ level: 'silent' }), workerId: 'worker-a', lease }
  const onRoom = () => {
    rooms += 1
  }
  const dispatcher = buildDispatcher({ ...common, policy, isEnabled, onRoom, latch: async () => hasRested })
  const running = dispatcher.run()
  let names = 0
  const add = (count: number, row: { group?: string; inMs?: number } = {}) =>
    Array.from({ length: count }, () => {
      names += 1
      const id = `row ${names}`
      rows.push({ id, group: row.group ?? id, dueAtMs: clock.now() + (row.inMs ?? 0) })
      return id
    })
  return {
    ...{ clock, asked, locked, dispatcher, add, released, lost, reclaims, settled },
    renewals: () => renewals,
    setTrusted: (is: boolean) => {
      isTrusted = is
    },
    setRested: (has: boolean) => {
      hasRested = has
    },
    /** How often it said that there is room. */
    rooms: () => rooms,
    /** Makes every claim fail, or none. */
    failClaims: (error?: Error) => {
      claimFailure = error
    },
    /** Lets claims take until the function that it returns is called. */
    holdClaims: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return resolve
    },
    started: () => [...attempts.keys()],
    /** The attempts that were told to end. */
    interrupted,
    /** Ends an attempt, and lets everything run that follows from it. */
    end: async (id: string) => {
      attempts.get(id)?.end()
      await rest()
    },
    /** Makes an attempt fail that could not be made. */
    fail: async (id: string, error: Error) => {
      attempts.get(id)?.fail(error)
      await rest()
    },
    [Symbol.asyncDispose]: async () => {
      const stopped = dispatcher.stop()
      for (const { end } of attempts.values()) end()
      await Promise.all([stopped, running])
    },
  }
}

/** Lets everything run that waits for no time: a queue in memory answers within a turn of the event loop. */
export async function rest(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

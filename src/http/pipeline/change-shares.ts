import type { Clock } from '../../base/clock.ts'
import { buildSemaphore, type Semaphore } from '../../base/semaphore.ts'
import { Problem } from '../problem/problem.ts'
import { type Caller, nameReader, type PermissionScope } from '../shape/caller.ts'

/** Maximum wait of a change for a place of its share. */
const WAIT_MS = 5_000

/** Connections of the pool that one share leaves to the others: a fifth, and one at least. */
const LEFT_PART = 5

/** Whoever shares the connections of a process for changes: a caller, with the others of its account. */
export type Changer = { caller: Pick<Caller, 'portal' | 'userId'>; scope: PermissionScope }

/** Makes a change within the share of its caller. Throws 429 `rate_limited`, 503 if the database is the cause. */
export type ChangeShares = <Result>(changer: Changer, work: () => Promise<Result>) => Promise<Result>

/**
 * Builds the shares of changes in the connections of a process (docs/contract/api.md#changes-at-once). Changes of one
 * account wait for each other's locks, each with a connection: without shares a few hundred of them would hold every
 * one, and the requests of others would wait behind.
 */
export function buildChangeShares({
  connections,
  clock,
}: {
  connections: number
  clock: Pick<Clock, 'sleep'>
}): ChangeShares {
  const places = Math.max(1, connections - Math.max(1, Math.floor(connections / LEFT_PART)))
  const shares = new Map<string, Semaphore>()
  let made = 0

  async function enter(name: string): Promise<Semaphore> {
    const share = shares.get(name) ?? buildSemaphore(places)
    shares.set(name, share)
    if (share.tryTake()) return share
    const patience = new AbortController()
    const before = made
    const isIn = await share.takeBefore(() => clock.sleep(WAIT_MS, patience.signal))
    patience.abort()
    if (isIn) return share
    // Where no change of anybody was made meanwhile, the caller is not the cause.
    throw made === before ? buildUnavailable() : buildLimited()
  }

  return async (changer, work) => {
    const name = nameShare(changer)
    const share = await enter(name)
    try {
      const result = await work()
      made += 1
      return result
    } finally {
      share.release()
      if (share.taken() === 0) shares.delete(name)
    }
  }
}

/** Callers limited to one account share with its others, whose changes take the same locks. */
function nameShare({ caller, scope }: Changer): string {
  const [account, other] = scope === 'all' ? [] : scope
  return account !== undefined && other === undefined ? account : nameReader(caller)
}

function buildLimited(): Problem {
  const detail = 'Too many changes of this caller or its account at once. Send fewer in parallel.'
  return new Problem('rate_limited', detail, { headers: { 'retry-after': '1' } })
}

function buildUnavailable(): Problem {
  const detail = `The database has made no change for ${WAIT_MS / 1000} seconds. Try again.`
  return new Problem('dependency_unavailable', detail, { headers: { 'retry-after': '5' } })
}

import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { markLast } from '../../postgres/statement/dialect.ts'
import { compileFragment, type Fragment } from '../../postgres/statement/fragment.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { type ClaimRequest, listBlocked } from '../policy.ts'

/** Groups visited by one claim for each free slot: two, because some have no room. */
const VISITED = { perSlot: 2, least: 16, most: 256 }

/** Rows read by one claim for each free slot, over all visited groups; at least four of each group. */
const DUE = { perSlot: 2, leastOfOne: 4 }

/** The table in which groups with due rows wait to be visited, at their `visit_at`. */
export interface VisitedQueue<Claimed> {
  /** The table of the groups that wait. */
  queue: string
  /** Its column of the group. */
  group: string
  /** A condition of the groups that `$workerId` may visit at `$now`, with `and` behind it. Default: all of them. */
  isOpen?: string
  /** The statement that claims of the visited groups; its rows are `work`. */
  build: (request: ClaimRequest, visits: VisitParams) => Fragment
  read: (work: unknown) => Claimed
}

export interface VisitParams {
  /** The visited groups, with the time for which each of them waited. */
  visited: readonly string[]
  visitTimes: readonly Date[]
  /** Rows read of one group. */
  duePerGroup: number
}

/** A lock that a claim takes before the rows of the queue. */
type TakeLock = (tx: Database) => Promise<void>

/** Claims of the least recently served groups. */
export interface VisitingClaim<Claimed> {
  /** Claims due rows, and visits further groups while the visited ones have no room. */
  claim(db: Database, request: ClaimRequest, lock?: TakeLock): Promise<Claimed[]>
  /** Claims from the first groups alone. */
  claimOnce(db: Database, request: ClaimRequest, lock?: TakeLock): Promise<Claimed[]>
}

/**
 * Builds the claim of a queue. The groups are locked by a separate statement: the next one sees every row written
 * before, and a writer of another row waits for the lock. So no group leaves the queue while it has due rows.
 */
export function buildVisitingClaim<Claimed>(parts: VisitedQueue<Claimed>): VisitingClaim<Claimed> {
  const { queue, group, isOpen = '', build, read } = parts
  const lockHeads = statement<
    Record<string, string> & { visit_at: Date },
    { workerId: string; now: Date; visits: number; blocked: readonly string[] }
  >(`
  select ${group}, visit_at from ${queue}
  where ${isOpen} visit_at <= $now and ${group} <> all($blocked::uuid[])
  order by visit_at limit $visits
  for update skip locked`)

  async function visit(
    db: Database,
    request: ClaimRequest,
    lock: TakeLock | undefined,
  ): Promise<{ claimed: Claimed[]; visits: number; isAll: boolean }> {
    const slots = request.fastSlots + request.slowSlots
    const visits = Math.min(VISITED.most, Math.max(VISITED.least, VISITED.perSlot * slots))
    return inTransaction(db, async (tx) => {
      await lock?.(tx)
      const { workerId, now } = request
      const heads = await lockHeads(tx, { workerId, now, visits, blocked: listBlocked(request) })
      const claim = build(request, {
        visited: heads.map((head) => head[group] as string),
        visitTimes: heads.map((head) => head.visit_at),
        duePerGroup: Math.max(DUE.leastOfOne, Math.ceil((DUE.perSlot * slots) / Math.max(1, heads.length))),
      })
      const { rows } = await tx.executeQuery(markLast(compileFragment<{ work: unknown }>(claim)))
      return { claimed: rows.map(({ work }) => read(work)), visits, isAll: heads.length < visits }
    })
  }

  return {
    claim: async (db, request, lock) => {
      for (let visited = 0; ; ) {
        const { claimed, visits, isAll } = await visit(db, request, lock)
        visited += visits
        // None of these had room: others may have, and should not wait for the next poll.
        if (claimed.length > 0 || isAll || visited >= VISITED.most) return claimed
      }
    },
    claimOnce: async (db, request, lock) => (await visit(db, request, lock)).claimed,
  }
}

/** The part `placed`: the rows `due`, by lane. Each group has one before any has a second. */
export const placeDue = (columns: string, order: string) => `
  placed as materialized (
    select ${columns}, is_slow, row_number() over (partition by is_slow order by turn, ${order}) as place from due
  )`

/** The condition that a row `placed` gets a slot. */
export const HAS_SLOT = 'place <= case when is_slow then $slowSlots::int else $fastSlots::int end'

/**
 * The parts of a claim from the due rows to the claimed ones. Rows of one turn in `placed` (`placeDue`) are ordered by
 * the last service of their group. `passed`: groups for which no slot was left. `held`: the rows that get a slot,
 * locked. `claimed`: the same with their new fence.
 */
export const claimPlaced = (queue: {
  table: string
  group: string
  /** The columns of `due` that order the rows of one turn. */
  order: string
  /** The condition that the row `d` is unclaimed. */
  isFree: string
  lock: 'for update' | 'for update skip locked'
}) => `${placeDue(`document_id, ${queue.group}`, queue.order)},
  passed as materialized (
    select ${queue.group} from placed where not is_slow group by ${queue.group} having min(place) > $fastSlots::int
  ),
  held as materialized (
    select d.document_id from ${queue.table} d
    where d.document_id = any(array(select document_id from placed where ${HAS_SLOT}))
      and ${queue.isFree}
    ${queue.lock}
  ),
  claimed as (
    update ${queue.table}
    set lease_owner = $workerId, next_attempt_at = null, fence = fence + 1, attempts = attempts + 1,
      last_attempt_at = $now, updated_at = $now
    where document_id = any(array(select document_id from held))
    returning *
  )`

import type { Fragment } from '../postgres/statement/fragment.ts'

/** A claim: the right and the duty to make one attempt. */
export interface Claim {
  /** The id of the queued row. */
  id: string
  /** Grows with every claim of the row; a result under an older one is void. */
  fence: number
}

/** Names one claim of one row. */
export function nameClaim(claim: Claim): string {
  return `${claim.id} ${claim.fence}`
}

export interface Work extends Claim {
  /** Group of the work: caps and turns are those of a group (a webhook, a target, a channel). */
  group: string
}

export interface Room {
  /** Free slots for groups that answer promptly. */
  fastSlots: number
  /** Free slots for slow groups (docs/contract/delivery.md#lanes). */
  slowSlots: number
  slowGroups: readonly string[]
  /** Groups that hold slots and do not answer: they get no more until they answer or become slow. */
  lateGroups: readonly string[]
  /** Attempts in flight in this process by group; those of other processes are counted by the queue. */
  inFlight: ReadonlyMap<string, number>
  /** Maximum number of attempts in flight for one group, over all processes. */
  perGroup: number
  /** Whether other workers may have claims that count; otherwise nothing is locked or searched. */
  hasPeers: boolean
}

/** The groups without room, from which nothing is claimed even while slots are free. Pure. */
export function listBlocked({ slowSlots, slowGroups, lateGroups, inFlight, perGroup }: Room): string[] {
  const capped = [...inFlight].filter(([, count]) => count >= perGroup).map(([group]) => group)
  return [...new Set([...capped, ...lateGroups, ...(slowSlots > 0 ? [] : slowGroups)])]
}

/** The groups whose rows are queued, not claimed, as they are routed. Pure. */
export function listUnready({ slowGroups, lateGroups }: Room): string[] {
  return [...slowGroups, ...lateGroups]
}

export interface ClaimRequest extends Room {
  workerId: string
  now: Date
}

/** Free slots, and the worker that has them: groups that another one visits are due later for it. */
export type WorkerRoom = Room & Partial<Pick<ClaimRequest, 'workerId'>>

export interface ReclaimRequest {
  workerId: string
  now: Date
  limit: number
}

/**
 * The queue of one policy. Implementations pass one suite (`test/harness/delivery/queue-conformance.ts`): caps and
 * turns of groups, fences, the state after a crash at any point.
 */
export interface DeliveryQueue<Claimed extends Work, Ended extends Claim, Settled> {
  /**
   * Claims due rows within the free slots. Groups take turns: the least recently served first; within a group the
   * longest due. The attempt counts from here on, also after a crash.
   */
  claim(request: ClaimRequest): Promise<Claimed[]>
  /** Records ended attempts and ends their claims. A result under an old fence is void. */
  settle(ended: readonly Ended[]): Promise<Settled>
  /** Releases claims whose attempt was not made: it is not counted. They are due at `dueAt`; default: now. */
  release(claims: readonly Claim[], now: Date, dueAt?: Date): Promise<void>
  /** Up to `limit` claims of a worker that has stopped, as attempts that were interrupted, for `settle`. Locks nothing. */
  reclaim(request: ReclaimRequest): Promise<Ended[]>
  /** Due time of the next unclaimed row whose group is not blocked, for a worker; null when none waits. */
  nextDueAt(room?: WorkerRoom): Promise<Date | null>
}

/** The part of the routing statement that a policy writes (docs/decisions/0019-one-engine-three-policies.md). */
export interface RoutingPart {
  /** The query of the rows of events, without parameters: reads `routed`, and becomes the part `<policy>_matched`. */
  matched: string
  /**
   * Further parts of a `with` clause, which read `<policy>_matched`. Three have fixed names: `<policy>_opened (id)` are
   * the queued rows, `<policy>_work (work json)` those of them that this worker has claimed, `<policy>_next (due_at)`
   * is the due time of the next row whose group is not blocked (`listBlocked`).
   */
  written: Fragment
  /**
   * Maximum number of rows of one event; undefined for any number. An event with more is in the part
   * `<policy>_aside (event_id)`: it has no rows in `_opened`, and `buildFanOut` writes its rows.
   */
  rowsOfEvent?: number
}

/** Routing, queue, attempt and settlement of one kind of delivery. */
export interface DeliveryPolicy<Claimed extends Work, Ended extends Claim, Settled> {
  /** Lower case; the names of its parts of the routing statement begin with it. */
  name: string
  concurrency: number
  /** Maximum number of attempts in flight for one group, over all processes. */
  perGroup: number
  queue: DeliveryQueue<Claimed, Ended, Settled>
  buildRouting(request: ClaimRequest): RoutingPart
  /**
   * Parts of a `with` clause that write up to `limit` further rows of one event that was set aside, and store their
   * progress. They have the three parts of `RoutingPart` and `<policy>_reached (event_id, is_last)`: the event, and
   * whether these were its last rows; no row when none is set aside, or others write it
   * (docs/decisions/0025-fan-out-in-parts.md).
   */
  buildFanOut?(request: ClaimRequest, limit: number): Fragment
  readWork(json: unknown): Claimed
  /**
   * Makes one attempt. A failure is a result; rejects only with an `OwnFault`, where this process could not make it.
   * `signal` interrupts it.
   */
  attempt(work: Claimed, signal: AbortSignal): Promise<Ended>
  onSettled(settled: Settled): void
  /** Results that were not recorded because another transaction locks one of their rows. Default: none. */
  listHeldBack?(settled: Settled): readonly Claim[]
}

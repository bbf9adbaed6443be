import type { Claim, ClaimRequest, DeliveryQueue, Work } from '../../../src/delivery/policy.ts'
import type { ManualClock } from '../run/manual-clock.ts'

/** How an attempt ends. `interrupted` ones are due again at once, `failed` ones later. */
export type AttemptEnd = 'delivered' | 'failed' | 'interrupted'

/** Where a connection breaks: in front of a statement, or behind it, so that its answer is lost. The first one is 0. */
export interface Break {
  at: 'before' | 'after'
  statement: number
}

/** A row of a queue, as the suite looks at it. */
export interface QueueRow {
  state: 'waiting' | 'claimed' | 'ended'
  attempts: number
  /** When a waiting row is due. */
  dueAt: Date | null
}

/** A queue whose connection breaks. */
export interface BreakingQueue<Claimed extends Work, Ended extends Claim, Settled> extends AsyncDisposable {
  queue: DeliveryQueue<Claimed, Ended, Settled>
  hasBroken(): boolean
  /** Resolves when the store has noticed the break: nothing of the connection runs there any more. */
  hasEnded(): Promise<void>
}

/** An implementation of the queue, and what the suite needs to fill it and to look into it. */
export interface QueueUnderTest<Claimed extends Work, Ended extends Claim, Settled> extends AsyncDisposable {
  queue: DeliveryQueue<Claimed, Ended, Settled>
  clock: ManualClock
  /** Makes a group whose rows are claimed. */
  addGroup(): Promise<string>
  /** Writes rows that wait; returns their ids in the order in which they are to be claimed. */
  addRows(group: string, rows?: { count?: number; dueAt?: Date }): Promise<string[]>
  /** Rows of a group that is not active rest. Undefined where every group is active. */
  setActive?(group: string, isActive: boolean): Promise<void>
  /** The result of a claimed row. */
  end(claimed: Claimed, end: AttemptEnd): Ended
  /** The ids of the rows whose result was written. */
  listRecorded(settled: Settled): string[]
  /** Undefined when there is no such row. */
  readRow(id: string): Promise<QueueRow | undefined>
  /** How many entries the attempt log of a row has. */
  countLogged(id: string): Promise<number>
  /** The queue over a connection of its own that breaks there. */
  openBreaking(point: Break): BreakingQueue<Claimed, Ended, Settled>
}

export const MINUTE_MS = 60_000

/** One worker over a queue: it counts what it has in flight, as a dispatcher does. */
export function buildWorker<Claimed extends Work, Ended extends Claim, Settled>(
  t: QueueUnderTest<Claimed, Ended, Settled>,
  workerId = 'worker-a',
) {
  const inFlight = new Map<string, number>()
  const request = (room: Partial<ClaimRequest> = {}): ClaimRequest => ({
    workerId,
    now: new Date(t.clock.now()),
    fastSlots: 100,
    slowSlots: 0,
    slowGroups: [],
    lateGroups: [],
    inFlight: new Map(inFlight),
    perGroup: 100,
    hasPeers: true,
    ...room,
  })
  const leave = (claims: readonly Claimed[]) => {
    for (const { group } of claims) inFlight.set(group, (inFlight.get(group) ?? 1) - 1)
  }
  const claim = async (room: Partial<ClaimRequest> = {}) => {
    const claimed = await t.queue.claim(request(room))
    for (const { group } of claimed) inFlight.set(group, (inFlight.get(group) ?? 0) + 1)
    return claimed
  }
  return {
    request,
    claim,
    settle: async (claims: readonly Claimed[], end: AttemptEnd) => {
      leave(claims)
      return t.listRecorded(await t.queue.settle(claims.map((claim) => t.end(claim, end))))
    },
    release: async (claims: readonly Claimed[]) => {
      leave(claims)
      await t.queue.release(claims, new Date(t.clock.now()))
    },
    /** Takes the claims of this worker back, as another one does when it is gone. */
    reclaim: ({ now = new Date(t.clock.now()), limit = 100 } = {}) => t.queue.reclaim({ workerId, now, limit }),
  }
}

export const idsOf = (claims: readonly Claim[]) => claims.map((claim) => claim.id)

export function countByGroup(claims: readonly Work[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { group } of claims) counts.set(group, (counts.get(group) ?? 0) + 1)
  return counts
}

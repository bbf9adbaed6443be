import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Mutex } from '../../base/semaphore.ts'
import type { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import type { Claim, ClaimRequest, DeliveryPolicy, Work } from '../policy.ts'
import type { WorkerLease } from '../worker-lease.ts'

/** Points of the work at which crash tests end the process. */
export type DispatcherPoint = 'after-claim' | 'before-record' | 'during-record'

/** Dependencies of a dispatcher. */
export interface DispatcherDeps<Claimed extends Work, Ended extends Claim, Settled> {
  policy: DeliveryPolicy<Claimed, Ended, Settled>
  clock: Clock
  /** Pause between batches of results, in real time. It decides nothing. */
  rest?: Clock['sleep']
  logger: Logger
  workerId: string
  lease: WorkerLease
  /** `ENABLE_API_EVENT_QUEUE`: while false nothing is attempted (docs/contract/events.md#event-queue-switch). */
  isEnabled: boolean
  /**
   * Resolves when there may be work at all, or at the abort, and says whether it had to wait: until then nothing is claimed
   * or looked for. Default: always.
   */
  latch?: (signal: AbortSignal) => Promise<boolean>
  /** Runs when an attempt ended, so that there is room for another. */
  onRoom?: () => void
  /** Runs for each attempt that was not made for a fault of this process. */
  onOwnFault?: (fault: OwnFault) => void
  onDispatcherPoint?: (point: DispatcherPoint) => void
}

/** Attempts what is due, by the rules of one policy. One for each policy in each process with the role `dispatcher`. */
export interface Dispatcher {
  policy: Pick<DeliveryPolicy<Work, Claim, unknown>, 'name' | 'buildRouting' | 'buildFanOut'>
  /** Held by the statement that claims for this dispatcher, until it has accepted the rows: each counts what is in flight. */
  mutex: Mutex
  /** Looks for due rows now. Cheap; any number of calls make one round. */
  notify(): void
  /** Attempts in flight now. */
  inFlight(): number
  /** Parameters for claiming routed rows; without slots while the dispatcher does not run. */
  measureRoom(): ClaimRequest
  /** Whether there is room for so many attempts that a claim of them is worth a statement. */
  hasRoom(): boolean
  /**
   * Attempts rows that the router claimed for this dispatcher, as the policy's part `_work` returned them; gives them back
   * when the dispatcher was stopped meanwhile.
   */
  accept(rows: readonly unknown[]): Promise<void>
  /** Looks for claims that a failed statement of this process may have made. */
  expectLeak(): void
  /** Whether there may be claims of this process that it does not know of. */
  mayLeak(): boolean
  /** Claims and attempts what is due now; resolves when all of it is recorded. Tests with a manual clock call this. */
  drain(): Promise<number>
  /** Claims nothing more, lets attempts end, interrupts those that do not, and records them. */
  stop(): Promise<void>
  /** Runs until stopped: claim, attempt, record. */
  run(): Promise<void>
}

import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Mutex } from '../../base/semaphore.ts'
import type { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import type { Claim, ClaimRequest, DeliveryPolicy, Work } from '../policy.ts'
import type { WorkerLease } from '../worker-lease.ts'

/** Points at which crash tests kill the process. */
export type DispatcherPoint = 'after-claim' | 'before-record' | 'during-record'

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
  /** Resolves when there may be work, or at the abort, with whether it had to wait. Default: at once. */
  latch?: (signal: AbortSignal) => Promise<boolean>
  /** Runs when an attempt ended, so that there is room for another. */
  onRoom?: () => void
  /** Runs for each attempt that was not made for a fault of this process. */
  onOwnFault?: (fault: OwnFault) => void
  onDispatcherPoint?: (point: DispatcherPoint) => void
}

/** Attempts due rows, by the rules of one policy. One for each policy in each process with the role `dispatcher`. */
export interface Dispatcher {
  policy: Pick<DeliveryPolicy<Work, Claim, unknown>, 'name' | 'buildRouting' | 'buildFanOut'>
  /** Held by the statement that claims for this dispatcher, until it has accepted the rows: each counts what is in flight. */
  mutex: Mutex
  /** Polls for due rows now. Cheap; concurrent calls share one round. */
  notify(): void
  inFlight(): number
  /** Parameters for claiming routed rows; without slots while the dispatcher does not run. */
  measureRoom(): ClaimRequest
  /** Whether there are enough free slots to be worth a claim statement. */
  hasRoom(): boolean
  /**
   * Attempts rows that the router claimed (the policy's part `_work`); releases them once the dispatcher has stopped.
   */
  accept(rows: readonly unknown[]): Promise<void>
  /** Searches for claims that a failed statement of this process may have made. */
  expectLeak(): void
  /** Whether there may be unknown claims of this process. */
  mayLeak(): boolean
  /** Claims and attempts the due rows; resolves when all of them are recorded. Tests with a manual clock call this. */
  drain(): Promise<number>
  /** Stops claiming, waits for attempts to end, interrupts the rest, and records them. */
  stop(): Promise<void>
  /** Runs until stopped: claim, attempt, record. */
  run(): Promise<void>
}

import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Mutex } from '../../base/semaphore.ts'
import { type Claim, type DeliveryPolicy, nameClaim, type Work } from '../policy.ts'
import { JOIN_WAIT_MS, LEASE_MS, type WorkerLease } from '../worker-lease.ts'

const LOOK_EVERY_MS = 1_000

const BATCH_SIZE = 500

/** Time after a failed statement in which its claims are searched: it may run on for 9 s on the server. */
const LEAK_WINDOW_MS = 4 * LEASE_MS

export interface RecoveryDeps<Ended extends Claim, Settled> {
  policy: Pick<DeliveryPolicy<Work, Ended, Settled>, 'onSettled'> & {
    queue: Pick<DeliveryPolicy<Work, Ended, Settled>['queue'], 'reclaim' | 'settle'>
  }
  clock: Clock
  logger: Logger
  workerId: string
  lease: WorkerLease
  /** Held by every statement of this process that claims for the policy, until its claims are held. */
  mutex: Mutex
}

/** Ends claims whose worker has stopped, and claims of this process whose answer never arrived. */
export interface Recovery {
  /** Registers this worker, whom others see before it claims; resolves at the abort too. */
  join(signal: AbortSignal): Promise<void>
  /** Renews the lease and ends such claims: their attempts count as interrupted and are repeated at once. */
  run(): Promise<void>
  /** Does so if the last time was a second ago. */
  runIfDue(): Promise<void>
  /** Whether other workers may have claims: live ones, and lost ones until their claims are taken back here. */
  mayOthersHold(): boolean
  /** Reports a failed statement that may have claimed: its claims are searched. */
  expectLeak(): void
  /** Whether such claims may exist. */
  mayLeak(): boolean
}

/** Builds it. `heldClaims`: the names of the claims that this process has, and so their results, now or later. */
export function buildRecovery<Ended extends Claim, Settled>(
  deps: RecoveryDeps<Ended, Settled>,
  heldClaims: () => ReadonlySet<string>,
): Recovery {
  const { policy, clock, logger, lease } = deps
  let leakUntilMs = Number.NEGATIVE_INFINITY
  let lookedAtMs = Number.NEGATIVE_INFINITY
  /** Lost workers without claims. */
  let recovered = new Set<string>()

  const mayLeak = () => clock.now() < leakUntilMs

  async function takeBack(workerId: string): Promise<void> {
    const found = await find(workerId, BATCH_SIZE)
    await repeat(workerId, found)
    if (found.length < BATCH_SIZE) recovered.add(workerId)
  }

  /**
   * While the mutex is held no statement of this process claims, so a claim that is not held belongs to a statement whose
   * answer was lost. Claims that were held before the search are left out: their results may be recorded during it.
   */
  async function takeBackOwn(): Promise<void> {
    await deps.mutex.take()
    let lost: Ended[]
    try {
      const held = new Set(heldClaims())
      const found = await find(deps.workerId, BATCH_SIZE + held.size)
      lost = found.filter((claim) => !held.has(nameClaim(claim)))
    } finally {
      deps.mutex.release()
    }
    await repeat(deps.workerId, lost)
  }

  function find(workerId: string, limit: number): Promise<Ended[]> {
    return policy.queue.reclaim({ workerId, now: new Date(clock.now()), limit })
  }

  async function repeat(workerId: string, lost: readonly Ended[]): Promise<void> {
    for (let from = 0; from < lost.length; from += BATCH_SIZE) {
      const batch = lost.slice(from, from + BATCH_SIZE)
      policy.onSettled(await policy.queue.settle(batch))
      logger.warn({ worker: workerId, attempts: batch.length }, 'attempts repeated: see docs/operations.md, stopping')
    }
  }

  async function run(): Promise<void> {
    const gone = await lease.renew()
    if (!lease.isTrusted()) return
    // A worker that came back may have claimed again.
    recovered = new Set(gone.filter((workerId) => recovered.has(workerId)))
    for (const workerId of gone) await takeBack(workerId)
    if (mayLeak()) await takeBackOwn()
  }

  async function join(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await run()
        if (lease.hasPeers()) await clock.sleep(JOIN_WAIT_MS, signal)
        return
      } catch (error) {
        logger.error({ err: error }, 'worker not registered yet: see docs/operations.md, database')
        await clock.sleep(LOOK_EVERY_MS, signal)
      }
    }
  }

  return {
    join,
    run,
    runIfDue: async () => {
      // A clock that was set back must not delay this.
      if (Math.abs(clock.now() - lookedAtMs) < LOOK_EVERY_MS) return
      lookedAtMs = clock.now()
      await run()
    },
    mayOthersHold: () => lease.hasPeers() || lease.gone().some((workerId) => !recovered.has(workerId)),
    expectLeak: () => {
      leakUntilMs = clock.now() + LEAK_WINDOW_MS
    },
    mayLeak,
  }
}

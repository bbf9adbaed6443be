import type { Clock } from '../../base/clock.ts'
import type { Dispatcher } from '../dispatcher/dispatcher.ts'
import type { NamedPart, RoutedRows } from './routing.store.ts'

/** The dispatchers of one process as its router sees them: one statement routes to all of them, and claims for each. */
export interface RoutedPolicies {
  /** Free fast slots of the first policy, which sets the pace. */
  countSlots(): number
  /** Whether the first policy has enough free slots to be worth a statement. */
  hasRoom(): boolean
  /** The part of each policy in a routing statement, with current parameters. */
  buildParts(): NamedPart[]
  /**
   * Locks the mutex of each dispatcher. Returns their idempotent release; undefined when one was not free before the
   * promise of `waitOver` resolved. Default: waits without limit.
   */
  takeTurns(): Promise<() => void>
  takeTurns(waitOver: () => Promise<unknown>): Promise<(() => void) | undefined>
  accept(byPolicy: readonly RoutedRows[]): Promise<void>
  /** Reports a failed statement that may have claimed. */
  expectLeaks(): void
}

/** Builds the view of `dispatchers`, in the order of the policies of a statement. */
export function buildRoutedPolicies(
  dispatchers: readonly [Dispatcher, ...Dispatcher[]],
  clock: Pick<Clock, 'now'>,
): RoutedPolicies {
  const [first] = dispatchers

  async function takeTurns(): Promise<() => void>
  async function takeTurns(waitOver: () => Promise<unknown>): Promise<(() => void) | undefined>
  async function takeTurns(waitOver?: () => Promise<unknown>): Promise<(() => void) | undefined> {
    const taken: Dispatcher[] = []
    const release = () => {
      for (const item of taken.splice(0)) item.mutex.release()
    }
    for (const dispatcher of dispatchers) {
      const isTaken = waitOver
        ? await dispatcher.mutex.takeBefore(waitOver)
        : await dispatcher.mutex.take().then(() => true)
      if (!isTaken) {
        release()
        return undefined
      }
      taken.push(dispatcher)
    }
    return release
  }

  return {
    countSlots: () => first.measureRoom().fastSlots,
    hasRoom: () => first.hasRoom(),
    buildParts: () =>
      dispatchers.map(({ policy, measureRoom }) => ({ name: policy.name, part: policy.buildRouting(measureRoom()) })),
    takeTurns,
    accept: async (byPolicy) => {
      const now = new Date(clock.now())
      for (const [index, { work, nextDueAt }] of byPolicy.entries()) {
        await dispatchers[index]?.accept(work)
        if (nextDueAt && nextDueAt <= now) dispatchers[index]?.notify()
      }
    },
    expectLeaks: () => {
      for (const dispatcher of dispatchers) dispatcher.expectLeak()
    },
  }
}

import type { AccountId } from '../base/id.ts'
import {
  advanceWalk,
  type LedgerWalk,
  type OwnEdges,
  START,
  type WalkPage,
  type WalkPosition,
} from './own-retention.ts'
import type { Sweep, SweepContext } from './sweep.ts'

// Rows of an account with a retention of its own are deleted by the index of accounts. The sweep of all other rows is in
// the order of time, and meets the rows of accounts that keep longer: it walks past them once, not in each round.

function resumeWalk(found: LedgerWalk | undefined, context: SweepContext, longer: readonly AccountId[]): LedgerWalk {
  const key = longer.join()
  const fresh = { longer: key, mark: START, again: START }
  if (found?.longer !== key) return { ...fresh, round: context, isAtMark: true, pages: 0, goesOn: true }
  if (found.round === context) return found
  return { ...found, round: context, isAtMark: true, pages: 0, goesOn: true }
}

/**
 * A sweep of the rows of all accounts but those that keep longer. Without any it is `deleteOld`; with some it deletes
 * page by page of a walk (`deletePage`), at most `limit` rows each.
 */
export function sweepAround(
  counts: Sweep['counts'],
  deleteOld: (context: SweepContext) => Promise<readonly number[]>,
  deletePage: (context: SweepContext, page: { after: WalkPosition; longer: readonly AccountId[] }) => Promise<WalkPage>,
): Sweep {
  const [name] = counts
  return {
    counts,
    isBatched: true,
    run: async (context) => {
      const { longer } = await context.readOwnEdges()
      if (longer.length === 0) {
        context.walks.delete(name)
        return deleteOld(context)
      }
      const walk = resumeWalk(context.walks.get(name), context, longer)
      const page = await deletePage(context, { after: walk.isAtMark ? walk.mark : walk.again, longer })
      context.walks.set(name, advanceWalk(walk, page, context.limit))
      return page.counts
    },
    goesOn: ({ walks }) => walks.get(name)?.goesOn === true,
  }
}

/** A sweep of the rows of the accounts with a retention of their own. Without any it makes no statement. */
export function sweepOwn(
  counts: Sweep['counts'],
  deleteOwn: (context: SweepContext, own: OwnEdges['own']) => Promise<readonly number[]>,
): Sweep {
  return {
    counts,
    isBatched: true,
    run: async (context) => {
      const { own } = await context.readOwnEdges()
      return own.length === 0 ? [] : deleteOwn(context, own)
    },
  }
}

import type { Clock } from '../../base/clock.ts'
import { Problem } from '../problem/problem.ts'

/** Running expensive reads of one user, over all its tokens (docs/contract/api.md#expensive-reads). */
const RUNNING_OF_CALLER = 2

/** Expensive reads of callers of one account that run at once. */
const RUNNING_OF_ACCOUNT = 3

const WAITING_OF_CALLER = 10

const WAITING_LIMIT = 200

const WAIT_MS = 5_000

/** The caller of an expensive read. */
export interface Reader {
  /** The user, or the portal session. */
  holder: string
  /** The accounts to which the read is limited; none for one over all accounts. */
  accounts: readonly string[]
}

/** Limits concurrent expensive reads. Throws 429 `rate_limited`, or 503 `overloaded` if other callers are the cause. */
export type ReadSemaphore = <Result>(reader: Reader, work: () => Promise<Result>) => Promise<Result>

interface WaitingRead {
  reader: Reader
  start: () => void
}

/**
 * Builds the semaphore of expensive reads: `atOnce` of them run in this process, with lower limits for one caller and
 * one account, first come, first served. A caller over its limit waits without delaying others.
 */
export function buildReadSemaphore({ atOnce, clock }: { atOnce: number; clock: Pick<Clock, 'sleep'> }): ReadSemaphore {
  const ofCallers = new Map<string, number>()
  const ofAccounts = new Map<string, number>()
  let waiting: WaitingRead[] = []
  let running = 0

  const isFull = ({ holder, accounts }: Reader) =>
    (ofCallers.get(holder) ?? 0) >= RUNNING_OF_CALLER ||
    accounts.some((account) => (ofAccounts.get(account) ?? 0) >= RUNNING_OF_ACCOUNT)

  function count({ holder, accounts }: Reader, by: 1 | -1): void {
    running += by
    add(ofCallers, holder, by)
    for (const account of accounts) add(ofAccounts, account, by)
  }

  function leave(reader: Reader): void {
    count(reader, -1)
    const next = running < atOnce ? waiting.find((entry) => !isFull(entry.reader)) : undefined
    if (!next) return
    waiting = waiting.filter((entry) => entry !== next)
    count(next.reader, 1)
    next.start()
  }

  async function enter(reader: Reader): Promise<void> {
    if (running < atOnce && !isFull(reader)) return count(reader, 1)
    const ofSame = waiting.filter((entry) => entry.reader.holder === reader.holder)
    if (ofSame.length >= WAITING_OF_CALLER) throw buildLimited()
    if (waiting.length >= WAITING_LIMIT) throw buildOverloaded()
    const started = Promise.withResolvers<'turn'>()
    const entry = { reader, start: () => started.resolve('turn') }
    waiting.push(entry)
    const patience = new AbortController()
    const late = clock.sleep(WAIT_MS, patience.signal).then(() => 'late' as const)
    const first = await Promise.race([started.promise, late])
    patience.abort()
    if (first === 'turn') return
    // A place became free at the same moment.
    if (!waiting.includes(entry)) return
    waiting = waiting.filter((waiter) => waiter !== entry)
    throw isFull(reader) ? buildLimited() : buildOverloaded()
  }

  return async (reader, work) => {
    await enter(reader)
    try {
      return await work()
    } finally {
      leave(reader)
    }
  }
}

function add(counts: Map<string, number>, key: string, by: number): void {
  const sum = (counts.get(key) ?? 0) + by
  if (sum === 0) counts.delete(key)
  else counts.set(key, sum)
}

const RETRY = { headers: { 'retry-after': '1' } }

function buildLimited(): Problem {
  return new Problem(
    'rate_limited',
    `Too many expensive reads at once: ${RUNNING_OF_CALLER} of one caller and ${RUNNING_OF_ACCOUNT} of one account run, ` +
      'others wait. Send them one after the other, or leave out count, filters and sort.',
    RETRY,
  )
}

function buildOverloaded(): Problem {
  return new Problem('overloaded', 'Too many expensive reads are in progress. Try again in a few seconds.', RETRY)
}

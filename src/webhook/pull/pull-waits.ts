import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { WebhookId } from '../../base/id.ts'
import { Problem } from '../../http/problem/problem.ts'

/** Interval between polls for due rows: retries have no notification, and notifications may be missed. */
const LOOK_EVERY_MS = 1_000

/** Pulls that may wait in one process (docs/contract/pull.md#limits). */
const WAITING = { webhook: 10, caller: 20, account: 50, process: 500 } as const

export interface PullVisitor {
  webhook: WebhookId
  /** The subject of the caller's limits (`nameHolder`). */
  caller: string
  /** The account of the webhook; null for a global one. */
  account: string | null
}

export interface PullPlace {
  /** Waits for a notification since the last wait, the next look, or the end. True: a row may be due. */
  wait(): Promise<boolean>
  end(): void
  /** Whether the wait has ended, or the process stops. */
  isOver(): boolean
  leave(): void
}

/** The pulls that wait in this process. They hold no connection, and share one poll a second. */
export interface PullWaits {
  /** Takes a place. Throws 429 `rate_limited` beyond a limit, 503 `overloaded` beyond that of the process. */
  enter(visitor: PullVisitor): PullPlace
  /** Reports a row of this webhook; undefined: notifications may have been missed. */
  notify(webhook?: string): void
  count(): number
  stop(): void
}

export interface PullWaitsDeps {
  clock: Clock
  logger: Logger
  /** The webhooks among these that need not wait (`listReady`). */
  listReady: (webhooks: readonly WebhookId[], now: Date) => Promise<WebhookId[]>
}

interface Waiter {
  webhook: WebhookId
  isReady: boolean
  isOver: boolean
  wake: () => void
}

/** Builds the waits. The poll runs only while a pull waits. */
export function buildPullWaits({ clock, logger, listReady }: PullWaitsDeps): PullWaits {
  const waiters = new Map<WebhookId, Set<Waiter>>()
  const counts = new Map<string, number>()
  const stopping = new AbortController()
  let isLooking = false

  const listWaiters = () => [...waiters.values()].flatMap((some) => [...some])
  const total = () => counts.get('process') ?? 0

  async function look(): Promise<void> {
    isLooking = true
    while (waiters.size > 0 && !stopping.signal.aborted) {
      await clock.sleep(LOOK_EVERY_MS, stopping.signal)
      const webhooks = [...waiters.keys()]
      if (webhooks.length === 0 || stopping.signal.aborted) break
      const ready = await listReady(webhooks, new Date(clock.now())).catch((err: unknown) => {
        logger.warn({ err }, 'waiting pulls not looked after: see docs/operations.md, database')
        return []
      })
      for (const webhook of ready) for (const waiter of waiters.get(webhook) ?? []) waiter.isReady = true
      // Each woken pull checks its caller and its time.
      for (const waiter of listWaiters()) waiter.wake()
    }
    isLooking = false
  }

  function notify(webhook?: string): void {
    const reached = webhook === undefined ? listWaiters() : (waiters.get(webhook as WebhookId) ?? [])
    for (const waiter of reached) {
      waiter.isReady = true
      waiter.wake()
    }
  }

  function add(names: readonly string[], by: 1 | -1): void {
    for (const name of names) {
      const sum = (counts.get(name) ?? 0) + by
      if (sum === 0) counts.delete(name)
      else counts.set(name, sum)
    }
  }

  function enter(visitor: PullVisitor): PullPlace {
    const names = checkRoom(visitor, (name) => counts.get(name) ?? 0)
    const { webhook } = visitor
    const waiter: Waiter = { webhook, isReady: false, isOver: false, wake: () => {} }
    const same = waiters.get(webhook) ?? new Set()
    waiters.set(webhook, same.add(waiter))
    add(names, 1)
    if (!isLooking) void look()
    const isOver = () => waiter.isOver || stopping.signal.aborted
    return {
      isOver,
      wait: async () => {
        if (!waiter.isReady && !isOver())
          await new Promise<void>((resolve) => {
            waiter.wake = resolve
          })
        const { isReady } = waiter
        waiter.isReady = false
        return isReady
      },
      end: () => {
        waiter.isOver = true
        waiter.wake()
      },
      leave: () => {
        if (!same.delete(waiter)) return
        if (same.size === 0) waiters.delete(webhook)
        add(names, -1)
      },
    }
  }

  return {
    enter,
    notify,
    count: total,
    stop: () => {
      stopping.abort()
      for (const waiter of listWaiters()) waiter.wake()
    },
  }
}

/** The names under which a pull counts. Throws when one of them is full. */
function checkRoom({ webhook, caller, account }: PullVisitor, countOf: (name: string) => number): string[] {
  const subjects = [
    ['webhook', webhook],
    ['caller', caller],
    ['account', account],
  ] as const
  const names: string[] = ['process']
  for (const [kind, id] of subjects) {
    if (id === null) continue
    const name = `${kind}:${id}`
    if (countOf(name) >= WAITING[kind]) throw buildFull(kind)
    names.push(name)
  }
  if (countOf('process') >= WAITING.process)
    throw new Problem(
      'overloaded',
      `${WAITING.process} pulls wait here already. Pull again with wait_seconds 0.`,
      RETRY,
    )
  return names
}

const RETRY = { headers: { 'retry-after': '5' } }

function buildFull(kind: 'webhook' | 'caller' | 'account'): Problem {
  const detail = `${WAITING[kind]} pulls of this ${kind} wait already. Pull with wait_seconds 0, or end one of them first.`
  return new Problem('rate_limited', detail, RETRY)
}

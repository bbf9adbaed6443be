import { COUNT_LIMIT } from '../health/webhook-out.ts'
import type { AccountActivity } from './account-activity.store.ts'
import type { WebhookActivity } from './activity.store.ts'
import type { Share } from './breakdown.store.ts'
import type { Summary } from './dashboard.store.ts'
import type { QueueDepth } from './queue-depth.store.ts'

function addCounts<Counts extends object>(parts: readonly Counts[]): Counts {
  const sums: Record<string, number> = {}
  for (const part of parts)
    for (const [name, count] of Object.entries(part)) sums[name] = (sums[name] ?? 0) + (count as number)
  return sums as Counts
}

/** The summary of several databases, home first, with the `failures` last failures. Types are those of home. */
export function addSummaries(parts: readonly Summary[], failures: number): Summary {
  const [first, ...others] = parts as [Summary, ...Summary[]]
  if (others.length === 0) return first
  const recent = parts.flatMap(({ recentFailures }) => recentFailures)
  recent.sort((a, b) => b.updatedAt.getTime() - a.updatedAt.getTime() || (a.id < b.id ? 1 : -1))
  return {
    deliveries: addCounts(parts.map(({ deliveries }) => deliveries)),
    isComplete: parts.every(({ isComplete }) => isComplete),
    exhausted: addCounts(parts.map(({ exhausted }) => exhausted)),
    webhooks: addCounts(parts.map(({ webhooks }) => webhooks)),
    eventTypes: first.eventTypes,
    recentFailures: recent.slice(0, failures),
    hours: first.hours.map(({ hour }, index) => ({
      hour,
      ...addCounts(
        parts.map(({ hours }) => ({ success: hours[index]?.success ?? 0, failed: hours[index]?.failed ?? 0 })),
      ),
    })),
  }
}

/** The shares of several databases, each measure once. Pure. */
export function addShares(parts: readonly (readonly Share[])[]): Share[] {
  const [first = [], ...others] = parts
  if (others.length === 0) return [...first]
  const sums = new Map<string, Share>()
  for (const share of parts.flat()) {
    const { attempts = 0, failed = 0 } = sums.get(share.measure) ?? {}
    sums.set(share.measure, { ...share, attempts: attempts + share.attempts, failed: failed + share.failed })
  }
  return [...sums.values()]
}

/** The webhooks of several databases in the order of `ids`; one that is being copied once. Pure. */
export function orderActivities(
  parts: readonly (readonly WebhookActivity[])[],
  ids: readonly string[],
): WebhookActivity[] {
  const [first = [], ...others] = parts
  if (others.length === 0) return [...first]
  const byWebhook = new Map(parts.flat().map((activity) => [activity.webhook as string, activity]))
  return [...new Set(ids)].flatMap((id) => byWebhook.get(id) ?? [])
}

/** The accounts and members of home, with the figures of the cell (`cells`) that each account is in. */
export function placeFigures(
  home: readonly AccountActivity[],
  cells: readonly (readonly AccountActivity[])[],
): AccountActivity[] {
  const placed = new Map(cells.flat().map((activity) => [activity.account, activity]))
  return home.map((activity) => ({ ...activity, ...placed.get(activity.account), members: activity.members }))
}

/** The work of several databases. Counts end at the limit. Pure. */
export function addDepths(parts: readonly QueueDepth[]): QueueDepth {
  const [first, ...others] = parts as [QueueDepth, ...QueueDepth[]]
  if (others.length === 0) return first
  const sum = (pick: (depth: QueueDepth) => number) =>
    Math.min(
      COUNT_LIMIT,
      parts.reduce((all, depth) => all + pick(depth), 0),
    )
  const longest = (pick: (depth: QueueDepth) => number) => Math.max(...parts.map(pick))
  const addLane = (lane: keyof QueueDepth['lanes']) => ({
    waiting: sum(({ lanes }) => lanes[lane].waiting),
    in_flight: sum(({ lanes }) => lanes[lane].in_flight),
    oldest_due_s: longest(({ lanes }) => lanes[lane].oldest_due_s),
  })
  const nextMs = parts.flatMap(({ retry }) => retry.next_attempt_at?.getTime() ?? [])
  return {
    unrouted: sum(({ unrouted }) => unrouted),
    oldest_unrouted_s: longest(({ oldest_unrouted_s: age }) => age),
    lanes: { fast: addLane('fast'), slow: addLane('slow'), throttled: addLane('throttled') },
    retry: {
      waiting: sum(({ retry }) => retry.waiting),
      next_attempt_at: nextMs.length > 0 ? new Date(Math.min(...nextMs)) : null,
    },
  }
}

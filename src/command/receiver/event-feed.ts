import type { Clock } from '../../clock.ts'
import type { ApiClient } from './api-client.ts'

/** Where events are listed. */
export const EVENTS_PATH = '/api/v3/webhook/event-occurrence'

/** An event as the API lists it. */
export interface EventRow {
  document_id: string
  event: string
  account: string | null
  resource: string
  action: string
  resource_id: string | null
  url: string | null
  routed_at: string | null
  created_at: string
}

/**
 * How much later than its `created_at` an event may become visible. An event bears the time of the request that caused it and is
 * seen when that request's transaction commits, so a slow one appears behind events that are newer.
 */
export const LATE_COMMIT_MS = 10_000

/** The events of a service from the opening on, each once. */
export interface EventFeed {
  /** What has become visible since the last call, oldest first. Throws an `ApiError`, and then has passed over nothing. */
  readNew(): Promise<EventRow[]>
}

/** The newest event that was known at an instant of our clock. */
interface Mark {
  knownAtMs: number
  newest: string
}

/**
 * Opens the feed at the present: what is visible now counts as old. All comparisons of times are between times of the service,
 * so a clock that goes wrong here loses nothing; our own clock only measures how long something has been known.
 */
export async function openEventFeed(
  deps: { client: ApiClient; clock: Pick<Clock, 'now'> },
  filters: readonly string[],
): Promise<EventFeed> {
  const { client, clock } = deps
  const seen = new Map<string, string>()
  let marks: Mark[] = []
  let since: string | undefined

  /** Reads everything from `since` on, and remembers it; gives what was not known. */
  const readNew = async () => {
    const startedAtMs = clock.now()
    const bound = since === undefined ? [] : [`created_at|gte|${since}`]
    const rows = await client.listAll<EventRow>(EVENTS_PATH, { filters: [...filters, ...bound], sort: 'created_at' })
    const found = rows.filter((row) => !seen.has(row.document_id))
    for (const row of found) seen.set(row.document_id, row.created_at)
    const newest = rows.at(-1)?.created_at
    if (newest !== undefined) marks.push({ knownAtMs: clock.now(), newest })
    settle(startedAtMs)
    return found
  }

  /** Whatever is not newer than what was known 10 s before a read began has been read by it: the next one begins there. */
  const settle = (startedAtMs: number) => {
    const settled = marks.findLast((mark) => mark.knownAtMs <= startedAtMs - LATE_COMMIT_MS)
    if (settled === undefined) return
    marks = marks.slice(marks.indexOf(settled))
    if (since !== undefined && settled.newest <= since) return
    since = settled.newest
    for (const [id, createdAt] of seen) if (createdAt < since) seen.delete(id)
  }

  const { data } = await client.listPage<EventRow>(EVENTS_PATH, { filters, sort: '-created_at', pageSize: 1 })
  const last = data[0]?.created_at
  if (last !== undefined) {
    since = new Date(Date.parse(last) - LATE_COMMIT_MS).toISOString()
    await readNew()
  }
  return { readNew }
}

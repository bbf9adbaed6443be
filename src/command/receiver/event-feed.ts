import type { Clock } from '../../base/clock.ts'
import type { ApiClient } from './api-client.ts'

/** The path of the list of events. */
export const EVENTS_PATH = '/api/v3/webhook/event-occurrence'

/** An event of the API's list. */
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

/** Longest time from an event's `created_at`, that of its request, to its visibility at the commit. */
export const LATE_COMMIT_MS = 10_000

/** The events of a service since the feed was opened, each once. */
export interface EventFeed {
  /** The events that became visible since the last call, oldest first. Throws an `ApiError`, and then skips none. */
  readNew(): Promise<EventRow[]>
}

/** The newest known event at an instant of the local clock. */
interface Mark {
  knownAtMs: number
  newest: string
}

/** Opens the feed at the present. Only times of the service are compared: a wrong local clock loses no event. */
export async function openEventFeed(
  deps: { client: ApiClient; clock: Pick<Clock, 'now'> },
  filters: readonly string[],
): Promise<EventFeed> {
  const { client, clock } = deps
  const seen = new Map<string, string>()
  let marks: Mark[] = []
  let since: string | undefined

  /** Reads the events from `since` on, and returns those that were unknown. */
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

  /** The start of the next read: events up to the newest one that was known 10 s before the last read have been read. */
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

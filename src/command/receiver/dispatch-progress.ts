import type { Clock } from '../../base/clock.ts'
import type { ApiClient } from './api-client.ts'
import { EVENTS_PATH, type EventRow } from './event-feed.ts'

/** The ledger. */
export const DISPATCH_PATH = '/api/v3/webhook/dispatch'

const LOOK_MS = 200

/** The members of a ledger row (docs/contract/delivery.md#ledger-row) that the commands print. */
export interface DispatchRow {
  document_id: string
  webhook: string
  event: string
  status: string
  attempts: number
  last_status_code: number | null
  last_error: string | null
  last_duration_ms: number | null
}

interface WaitDeps {
  client: ApiClient
  clock: Clock
}

/**
 * Waits until an event is routed, `othersMs` have passed since, in which other databases take it in, and each of its
 * dispatches has had an attempt; at most `limitMs`. `isRouted` is false when it was not routed by then. Returns at most 200
 * dispatches; `hasMore` is true when there are others.
 */
export async function followEvent(
  deps: WaitDeps,
  eventId: string,
  { limitMs, othersMs }: { limitMs: number; othersMs: number },
): Promise<{ isRouted: boolean; dispatches: DispatchRow[]; hasMore: boolean }> {
  const { client, clock } = deps
  const deadline = clock.now() + limitMs
  let routedSeenAt: number | undefined
  for (;;) {
    const { data: event } = await client.call<EventRow>('GET', `${EVENTS_PATH}/${eventId}`)
    const isRouted = event.routed_at !== null
    if (isRouted) routedSeenAt ??= clock.now()
    const isEverywhere = routedSeenAt !== undefined && clock.now() - routedSeenAt >= othersMs
    const { data, pagination } = await client.listPage<DispatchRow>(DISPATCH_PATH, {
      filters: [`event_id|eq|${eventId}`],
      sort: 'created_at',
      pageSize: 200,
    })
    const isDone = isEverywhere && data.every((row) => row.status !== 'pending')
    if (isDone || clock.now() >= deadline)
      return { isRouted, dispatches: data, hasMore: typeof pagination?.next_cursor === 'string' }
    await clock.sleep(LOOK_MS)
  }
}

/** Whether the service has other databases, which take in an event after its own has routed it. */
export async function hasCells(client: ApiClient): Promise<boolean> {
  const { data } = await client.call<{ components: readonly { component: string }[] }>('GET', '/api/v3/health')
  return data.components.some(({ component }) => component === 'cells')
}

/** Waits until a row has ended, at most `limitMs`; returns its last state. */
export async function followReplay(deps: WaitDeps, dispatchId: string, limitMs: number): Promise<DispatchRow> {
  const deadline = deps.clock.now() + limitMs
  for (;;) {
    const { data } = await deps.client.call<DispatchRow>('GET', `${DISPATCH_PATH}/${dispatchId}`)
    if (!['pending', 'retrying'].includes(data.status) || deps.clock.now() >= deadline) return data
    await deps.clock.sleep(LOOK_MS)
  }
}

/** One line about a row. */
export function describeDispatch(row: DispatchRow): string {
  const parts = [`dispatch  ${row.document_id}  ${row.status}`, `attempts = ${row.attempts}`]
  if (row.last_status_code !== null) parts.push(String(row.last_status_code))
  if (row.status !== 'success' && row.last_error !== null) parts.push(row.last_error)
  if (row.last_duration_ms !== null) parts.push(`${row.last_duration_ms} ms`)
  return [...parts, `webhook ${row.webhook}`].join('  ')
}

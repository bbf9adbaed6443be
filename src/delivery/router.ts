import { claimUnroutedEvents, markRouted } from '../event/event.store.ts'
import type { EventRecord } from '../event/event.ts'
import type { EventId, IdMaker, WebhookId } from '../id.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { insertDispatches, type NewDispatch } from '../webhook/ledger/dispatch.store.ts'
import { type Candidate, listCandidates } from './routing.store.ts'
import { decideRouting } from './routing.ts'

/** How many events one round of the router takes. Larger rounds hold their locks longer without moving more. */
export const ROUTER_BATCH_SIZE = 500

/**
 * After how many ledger rows a round ends, whatever events it still holds: 500 events for thousands of webhooks in one
 * statement would run into the time limit of statements, and again each time.
 */
export const ROUTER_BATCH_ROWS = 10_000

/** What one round of the router did. */
export interface RoutedBatch {
  events: number
  dispatches: number
  /** Whether the round was full, so that more may wait. */
  hasMore: boolean
}

/**
 * Routes one batch of recorded events: writes a ledger row for each webhook that an event goes to and marks the events
 * as routed, in one transaction. Any number of processes may do this at once: each takes events that no other holds.
 */
export async function routeEvents(
  deps: { ids: IdMaker; workerId: string },
  db: Database,
  now: Date,
): Promise<RoutedBatch> {
  return inTransaction(db, async (tx) => {
    const events = await claimUnroutedEvents(tx, ROUTER_BATCH_SIZE)
    if (events.length === 0) return { events: 0, dispatches: 0, hasMore: false }
    const candidates = await listCandidates(tx, [...new Set(events.map((event) => event.type))])
    const dispatches: NewDispatch[] = []
    const routed: EventId[] = []
    for (const event of events) {
      if (dispatches.length >= ROUTER_BATCH_ROWS) break
      for (const webhook of pickWebhooks(event, candidates)) dispatches.push(buildDispatch(deps.ids, event, webhook))
      routed.push(event.id)
    }
    await insertDispatches(tx, { dispatches, workerId: deps.workerId, now })
    await markRouted(tx, routed, now)
    const hasMore = events.length === ROUTER_BATCH_SIZE || routed.length < events.length
    return { events: routed.length, dispatches: dispatches.length, hasMore }
  })
}

function pickWebhooks(event: EventRecord, candidates: readonly Candidate[]): WebhookId[] {
  return candidates
    .filter((one) => one.event === event.type)
    .filter((one) => decideRouting({ ...event, accountScope: one.accountScope }, one.webhook) === 'deliver')
    .map((one) => one.webhook.id)
}

function buildDispatch(ids: IdMaker, event: EventRecord, webhook: WebhookId): NewDispatch {
  const { type, account } = event
  return { id: ids.next(), webhook, eventId: event.id, event: type, account, isTest: false, trigger: 'schedule' }
}

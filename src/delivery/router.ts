import { claimUnroutedEvents, markRouted } from '../event/event.store.ts'
import type { IdMaker } from '../id.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { insertDispatches, type NewDispatch } from './dispatch.store.ts'
import { listCandidates } from './routing.store.ts'
import { judgeRouting } from './routing.ts'

/** How many events one round of the router takes. Larger rounds hold their locks longer without moving more. */
export const ROUTER_BATCH_SIZE = 500

/**
 * Routes one batch of recorded events: writes a ledger row for each webhook that an event goes to and marks the events
 * as routed, in one transaction. Returns how many events were routed and how many rows were written; call again while
 * `events` is full. Any number of processes may do this at once: each takes events that no other holds.
 */
export async function routeEvents(
  deps: { ids: IdMaker; workerId: string },
  db: Database,
  now: Date,
): Promise<{ events: number; dispatches: number }> {
  return inTransaction(db, async (tx) => {
    const events = await claimUnroutedEvents(tx, ROUTER_BATCH_SIZE)
    if (events.length === 0) return { events: 0, dispatches: 0 }
    const candidates = await listCandidates(tx, [...new Set(events.map((event) => event.event))])
    const dispatches = events.flatMap((event) =>
      candidates
        .filter((one) => one.event === event.event)
        .filter((one) => judgeRouting({ ...event, accountScope: one.accountScope }, one.webhook) === 'deliver')
        .map(
          (one): NewDispatch => ({
            id: deps.ids.next(),
            webhook: one.webhook.id,
            eventId: event.id,
            event: event.event,
            account: event.account,
            isTest: false,
            trigger: 'schedule',
          }),
        ),
    )
    await insertDispatches(tx, { dispatches, workerId: deps.workerId, now })
    await markRouted(
      tx,
      events.map((event) => event.id),
      now,
    )
    return { events: events.length, dispatches: dispatches.length }
  })
}

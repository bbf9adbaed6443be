import type { EventId, WebhookId } from '../../../src/base/id.ts'
import type { ClaimRequest } from '../../../src/delivery/policy.ts'
import { type RoutedRows, routeBatch, routeFanOut } from '../../../src/delivery/routing/routing.store.ts'
import { type ClaimedDispatch, readClaimedDispatch } from '../../../src/webhook/delivery/claimed-work.ts'
import { buildWebhookFanOut, buildWebhookRouting } from '../../../src/webhook/delivery/routing.store.ts'
import { createTestDatabase } from '../database/database.ts'
import { buildManualClock } from '../run/manual-clock.ts'
import { buildLedger } from './ledger.ts'

const FIRST = '00000000-0000-0000-0000-000000000000'

/** Routes events to webhooks on a database of its own, without a router that runs. */
export async function openRouting() {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  /** Routes up to 1,000 events, and returns what this worker claimed of their rows: none without slots. */
  const route = async (change: Partial<ClaimRequest> = {}, rowsOfEvent?: number): Promise<ClaimedDispatch[]> =>
    (await routeRows(change, rowsOfEvent)).work.map(readClaimedDispatch)
  /** The same, as the router reads it. */
  const routeRows = async (change: Partial<ClaimRequest> = {}, rowsOfEvent?: number): Promise<RoutedRows> => {
    const request = buildRequest(change)
    const input = { after: FIRST, limit: 1_000, now: ledger.now() }
    const part = buildWebhookRouting(request, rowsOfEvent)
    const { byPolicy } = await routeBatch(database.db, input, [{ name: 'webhook', part }])
    return byPolicy[0]!
  }
  /** Writes the parts of events that were set aside, each of `limit` rows; returns how many rows those were. */
  const routeParts = async (limit: number): Promise<number> => {
    const writePart = () =>
      routeFanOut(database.db, {
        name: 'webhook',
        written: buildWebhookFanOut(buildRequest(), limit),
        now: ledger.now(),
      })
    let rows = 0
    for (let part = await writePart(); part; part = await writePart()) rows += part.opened
    return rows
  }
  const buildRequest = (change: Partial<ClaimRequest> = {}): ClaimRequest => ({
    workerId: 'worker-a',
    now: ledger.now(),
    fastSlots: 0,
    slowSlots: 0,
    slowGroups: [],
    lateGroups: [],
    inFlight: new Map(),
    perGroup: 100,
    hasPeers: true,
    ...change,
  })
  /** Routes all that waits, and tells to which webhooks each event went. */
  const routeAll = async () => {
    await route()
    const targets = new Map<EventId, WebhookId[]>()
    for (const row of await ledger.listRouted())
      targets.set(row.event_id, [...(targets.get(row.event_id) ?? []), row.webhook])
    return targets
  }
  return {
    database,
    db: database.db,
    clock,
    ledger,
    route,
    routeRows,
    routeParts,
    routeAll,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

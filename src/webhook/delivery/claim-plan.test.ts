import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database.ts'
import { explainStatements, type PlanNode } from '../../../test/harness/explain.ts'
import { buildLedger } from '../../../test/harness/ledger.ts'
import { buildManualClock } from '../../../test/harness/manual-clock.ts'
import { claimUnroutedEvents } from '../../event/event.store.ts'
import type { WebhookId } from '../../id.ts'
import type { Database } from '../../postgres/database.ts'
import { cancelOrphanedDispatches } from '../ledger/dispatch.store.ts'
import { claimDispatches, findLostClaims, findNextDueAt } from './claim.store.ts'

const ENDED = 200_000
const WAITING = 50_000

/** Statements of every round must cost what waits, not what the ledger holds: no step may read it through. */
describe('plans on a ledger of 200,000 ended and 50,000 waiting rows', () => {
  const clock = buildManualClock()
  const now = new Date(clock.now())
  let database: TestDatabase

  beforeAll(async () => {
    database = await createTestDatabase()
    const ledger = buildLedger(database.db, clock)
    const webhooks: WebhookId[] = []
    for (let index = 0; index < 20; index += 1) webhooks.push(await ledger.addWebhook())
    await fillLedger(database.db, { webhooks, now })
  })
  afterAll(() => database[Symbol.asyncDispose]())

  const explain = async (work: (db: Database) => Promise<unknown>) =>
    (await explainStatements(database, work)).flatMap((one) => one.nodes)

  const claim = (db: Database) =>
    claimDispatches(db, {
      workerId: 'worker-a',
      now,
      leaseUntil: new Date(now.getTime() + 30_000),
      fastPlaces: 100,
      slowPlaces: 25,
      slowWebhooks: [],
      perWebhook: 20,
    })

  it('claims through the partial indexes', async () => {
    const nodes = await explain(claim)
    expect(listReadThrough(nodes)).toEqual([])
    expect(indexesOf(nodes)).toContain('webhook_dispatch_due_idx')
    expect(indexesOf(nodes)).toContain('webhook_dispatch_lease_idx')
    expect(countRowsRead(nodes)).toBeLessThan(5_000)
  })

  it('looks for the next due row through the partial indexes', async () => {
    const nodes = await explain(findNextDueAt)
    expect(listReadThrough(nodes)).toEqual([])
    expect(countRowsRead(nodes)).toBeLessThan(500)
  })

  it('looks for lost claims through the index of what is claimed', async () => {
    const nodes = await explain((db) => findLostClaims(db, now, 500))
    expect(listReadThrough(nodes)).toEqual([])
    expect(indexesOf(nodes)).toEqual(['webhook_dispatch_lease_idx'])
  })

  it('finds unrouted events without reading those that were routed', async () => {
    const nodes = await explain((db) => claimUnroutedEvents(db, 500))
    expect(indexesOf(nodes)).toEqual(['event_occurrence_unrouted_idx'])
  })

  it('looks for orphans without reading what ended', async () => {
    const nodes = await explain((db) => cancelOrphanedDispatches(db, { workerId: 'worker-a', now, limit: 1_000 }))
    expect(listReadThrough(nodes)).toEqual([])
  })
})

/** Steps that read the whole ledger, or the whole of what happened. */
function listReadThrough(nodes: readonly PlanNode[]): string[] {
  return nodes
    .filter((node) => node['Node Type'] === 'Seq Scan')
    .map((node) => node['Relation Name'] ?? '')
    .filter((name) => name === 'webhook_dispatch' || name === 'event_occurrence')
}

function indexesOf(nodes: readonly PlanNode[]): string[] {
  return [...new Set(nodes.flatMap((node) => node['Index Name'] ?? []))].sort()
}

function countRowsRead(nodes: readonly PlanNode[]): number {
  const scans = nodes.filter(
    (node) => node['Relation Name'] === 'webhook_dispatch' && node['Node Type'].includes('Scan'),
  )
  return scans.reduce((sum, node) => sum + (node['Actual Rows'] ?? 0) * (node['Actual Loops'] ?? 1), 0)
}

async function fillLedger(db: Database, input: { webhooks: readonly WebhookId[]; now: Date }): Promise<void> {
  const { webhooks, now } = input
  await sql`
    insert into webhook_dispatch (document_id, webhook, event_id, event, status, attempts, ended_at, created_at, updated_at)
    select gen_random_uuid(), (${webhooks}::uuid[])[1 + n % ${webhooks.length}::int], gen_random_uuid(), 'contract.create',
      case when n % 50 = 0 then 'exhausted' else 'success' end, 1, ${now}, ${now}::timestamptz - n * interval '1 second', ${now}
    from generate_series(1, ${ENDED}::int) n`.execute(db)
  await sql`
    with written as (
      insert into event_occurrence (document_id, event, resource, action, routed_at, created_at)
      select gen_random_uuid(), 'contract.create', 'contract', 'create', ${now}::timestamptz, ${now}
      from generate_series(1, ${WAITING}::int) n
      returning document_id
    )
    insert into webhook_dispatch (document_id, webhook, event_id, event, status, attempts, next_attempt_at, created_at, updated_at)
    select gen_random_uuid(), (${webhooks}::uuid[])[1 + (row_number() over ()) % ${webhooks.length}::int], document_id,
      'contract.create', 'pending', 0, ${now}, ${now}, ${now} from written`.execute(db)
  await sql`analyze webhook_dispatch, event_occurrence, webhook`.execute(db)
}

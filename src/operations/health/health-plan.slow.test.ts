import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { explainStatements, type PlanNode } from '../../../test/harness/plan/explain.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { WebhookId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { readWebhookOutFacts } from './health.store.ts'

const ROWS = 3_000
const LIMIT = 300

describe(`the facts of health on ${ROWS} rows of each kind`, () => {
  const clock = buildManualClock()
  const now = new Date(clock.now())
  let database: TestDatabase

  beforeAll(async () => {
    database = await createTestDatabase()
    const ledger = buildLedger(database.db, clock)
    const [active, resting] = [await ledger.addWebhook(), await ledger.addWebhook()]
    const throttled = await ledger.addWebhook({ maxPerSecond: 1 })
    await fillLedger(database.db, { active, resting, throttled, now })
  })
  afterAll(() => database[Symbol.asyncDispose]())

  test('end at the limit, and the age is that of the oldest row', async () => {
    expect(await readWebhookOutFacts(database.db, now, LIMIT)).toEqual({
      exhausted_24h: LIMIT,
      auto_disabled: LIMIT,
      backlog: LIMIT,
      oldest_pending_s: ROWS,
      throttled: LIMIT,
      oldest_throttled_s: ROWS,
    })
  })

  test('are exact below the limit', async () => {
    const facts = await readWebhookOutFacts(database.db, now, 10 * ROWS)
    expect(facts).toMatchObject({ exhausted_24h: ROWS, auto_disabled: ROWS, backlog: 2 * ROWS, throttled: ROWS })
  })

  test('read a small multiple of the limit for any backlog', async () => {
    const explained = await explainStatements(database, (db) => readWebhookOutFacts(db, now, LIMIT))
    const rowsRead = explained.flatMap(({ nodes }) => nodes).reduce((sum, node) => sum + countRowsRead(node), 0)
    expect(rowsRead).toBeGreaterThan(3 * LIMIT)
    expect(rowsRead).toBeLessThan(7 * LIMIT)
  })
})

/** Rows that a plan step read from a table or an index, including filtered ones. */
function countRowsRead(node: PlanNode & { 'Rows Removed by Filter'?: number }): number {
  if (!node['Relation Name'] || !node['Node Type'].includes('Scan')) return 0
  return ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 1)
}

/**
 * Due rows of an active webhook, the oldest `ROWS` seconds old; as many of an inactive and of a throttled one; exhausted and failed rows of
 * the last day; webhooks that the service disabled, and as many that users disabled; events without routing.
 */
async function fillLedger(
  db: Database,
  input: { active: WebhookId; resting: WebhookId; throttled: WebhookId; now: Date },
): Promise<void> {
  const { active, resting, throttled, now } = input
  await sql`update webhook set is_actived = false where document_id = ${resting}`.execute(db)
  await sql`
    insert into webhook_dispatch_open
      (document_id, webhook, event_id, event, status, attempts, next_attempt_at, created_at, updated_at)
    select gen_random_uuid(), webhook, gen_random_uuid(), 'contract.create', 'pending', 1,
      ${now}::timestamptz - n * interval '1 second', ${now}, ${now}
    from generate_series(1, ${ROWS}::int) n, (values (${active}::uuid), (${resting}::uuid),
      (${throttled}::uuid)) kind (webhook)`.execute(db)
  await sql`
    insert into webhook_queue (webhook, visit_at, is_held, free_at) values
      (${active}, ${now}::timestamptz - ${ROWS}::int * interval '1 second', false, null),
      (${resting}, ${now}::timestamptz - ${ROWS}::int * interval '1 second', true, null),
      (${throttled}, ${now}::timestamptz + interval '1 second', false, ${now}::timestamptz + interval '1 second')`.execute(
    db,
  )
  await sql`
    insert into webhook_dispatch_ended
      (document_id, webhook, event_id, event, status, attempts, ended_at, created_at, updated_at)
    select gen_random_uuid(), ${active}, gen_random_uuid(), 'contract.create', status, 1, ${now}, ${now}, ${now}
    from generate_series(1, ${ROWS}::int) n, (values ('exhausted'), ('failed')) kind (status)`.execute(db)
  await sql`
    insert into webhook (document_id, url, is_global, is_actived, disabled_reason, created_at, updated_at)
    select gen_random_uuid(), 'https://hooks.example.com/', true, false, kind.reason, ${now}, ${now}
    from generate_series(1, ${ROWS}::int) n, (values ('consecutive-failures'), (null)) kind (reason)`.execute(db)
  await sql`
    with recorded as (
      insert into event_occurrence (document_id, event, resource, action, created_at)
      select gen_random_uuid(), 'contract.create', 'contract', 'create', ${now}
      from generate_series(1, ${ROWS}::int) n returning document_id
    )
    insert into event_queue select document_id from recorded`.execute(db)
  await sql`analyze webhook_dispatch_open, webhook_dispatch_ended, webhook_queue, event_queue, event_occurrence, webhook`.execute(
    db,
  )
}

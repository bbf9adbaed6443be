import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { explainStatements, type PlanNode } from '../../../test/harness/plan/explain.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId } from '../../base/id.ts'
import { readSummary } from './dashboard.store.ts'

const SUCCESSES = 30_000
const FAILURES = 5_000
/** Counts of the last 24 hours: one row for each minute and status. */
const MINUTES = 2 * 1_440
const SHOWN = 10
/** Deliveries of some accounts that are counted (docs/contract/delivery.md#dashboard). */
const COUNTED = 2_000

describe(`the summary over ${SUCCESSES + FAILURES} ended deliveries`, () => {
  const clock = buildManualClock()
  const now = new Date(clock.now())
  let database: TestDatabase

  beforeAll(async () => {
    database = await createTestDatabase()
    const { db } = database
    const webhook = await buildLedger(db, clock).addWebhook()
    await sql`
      insert into webhook_dispatch_ended
        (document_id, webhook, event_id, event, status, attempts, ended_at, created_at, updated_at)
      select gen_random_uuid(), ${webhook}::uuid, gen_random_uuid(), 'contract.create',
        case when n <= ${FAILURES}::int then 'exhausted' else 'success' end, 1, at, at, at
      from (
        select n, ${now}::timestamptz - n * interval '1 second' as at
        from generate_series(1, ${SUCCESSES + FAILURES}::int) n
      ) x`.execute(db)
    await sql`
      insert into webhook_delivery_minute (minute, status, shard, came, deliveries)
      select date_trunc('minute', ${now}::timestamptz) - n * interval '1 minute', status, 0, 1, 1
      from generate_series(0, ${MINUTES / 2 - 1}::int) n, (values ('success'), ('exhausted')) s (status)`.execute(db)
    await sql`analyze webhook_dispatch_open, webhook_dispatch_ended, webhook_delivery_minute`.execute(db)
  })
  afterAll(() => database[Symbol.asyncDispose]())

  test('reads the counts of minutes and of webhooks and the failures that it shows, no other delivery and no webhook', async () => {
    const read = (db: TestDatabase['db']) => readSummary(db, { now, failures: SHOWN, scope: 'all' })
    expect((await read(database.db)).recentFailures).toHaveLength(SHOWN)
    const explained = await explainStatements(database, read)
    const nodes = explained.flatMap((plan) => plan.nodes)
    const countOf = (tables: string) =>
      nodes.filter((node) => node['Relation Name']?.startsWith(tables)).reduce((sum, node) => sum + countRead(node), 0)
    expect(countOf('webhook_dispatch')).toBe(SHOWN)
    expect(countOf('webhook_delivery_minute')).toBeLessThanOrEqual(MINUTES)
    expect(nodes.map((node) => node['Relation Name'])).not.toContain('webhook')
  })
})

describe('the summary of an account with many deliveries', () => {
  const clock = buildManualClock()
  const now = new Date(clock.now())
  let database: TestDatabase
  let account: AccountId

  beforeAll(async () => {
    database = await createTestDatabase()
    const ledger = buildLedger(database.db, clock)
    account = await ledger.addAccount()
    const webhook = await ledger.addWebhook({ account })
    await addDeliveries(webhook, COUNTED)
  })
  afterAll(() => database[Symbol.asyncDispose]())

  const addDeliveries = (webhook: string, count: number) =>
    sql`
      insert into webhook_dispatch_ended
        (document_id, webhook, event_id, event, account, status, attempts, ended_at, created_at, updated_at)
      select gen_random_uuid(), ${webhook}::uuid, gen_random_uuid(), 'contract.create', ${account}::uuid, 'success', 1,
        at, at, at
      from (select ${now}::timestamptz - n * interval '1 ms' as at from generate_series(1, ${count}::int) n) x`.execute(
      database.db,
    )

  const read = (db: TestDatabase['db']) => readSummary(db, { now, failures: SHOWN, scope: [account] })

  test('counts 2,000 one by one, and more of them by their hours', async () => {
    const { deliveries, isComplete } = await read(database.db)
    expect([deliveries.success, isComplete]).toEqual([COUNTED, true])
    const { rows } = await sql<{ id: string }>`select document_id as id from webhook`.execute(database.db)
    await addDeliveries(rows[0]?.id ?? '', COUNTED)
    await sql`
      insert into webhook_outcome (scope, width, at, measure, count)
      select ${account}::uuid, 'hour', date_trunc('hour', ${now}::timestamptz) - n * interval '1 hour', measure, 10
      from generate_series(0, 25) n, (values ('success'), ('exhausted'), ('cause:dns')) m (measure)`.execute(
      database.db,
    )
    await sql`analyze webhook_dispatch_ended, webhook_outcome`.execute(database.db)
    const summary = await read(database.db)
    expect(summary.isComplete).toBe(false)
    expect(summary.deliveries).toMatchObject({ success: 240, exhausted: 240, failed: 0, pending: 0 })
    expect(summary.hours.every(({ success, failed }) => success === 10 && failed === 10)).toBe(true)
    expect(await countLedgerReads()).toBeLessThanOrEqual(COUNTED + 1 + SHOWN)
  })

  test('reads no ended delivery but the failures shown where the sums of hours alone pass the limit', async () => {
    await sql`update webhook_outcome set count = 1000`.execute(database.db)
    const { deliveries, isComplete } = await read(database.db)
    expect([deliveries.success, isComplete]).toEqual([24_000, false])
    expect(await countLedgerReads()).toBeLessThanOrEqual(SHOWN)
  })

  async function countLedgerReads(): Promise<number> {
    const nodes = (await explainStatements(database, read)).flatMap((item) => item.nodes)
    const ledger = nodes.filter((node) => node['Relation Name']?.startsWith('webhook_dispatch'))
    return ledger.reduce((sum, node) => sum + countRead(node), 0)
  }
})

/** Rows that a step of a plan took from a table or an index, with those that it passed over. */
function countRead(node: PlanNode): number {
  if (!node['Node Type'].includes('Scan')) return 0
  return ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 1)
}

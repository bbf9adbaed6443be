import { sql } from 'kysely'
import { afterEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { explainStatements, type PlanNode } from '../../../test/harness/plan/explain.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { WebhookId } from '../../base/id.ts'
import { readQueueDepth } from './queue-depth.store.ts'

const clock = buildManualClock()
const now = new Date(clock.now())
const EMPTY = { waiting: 0, in_flight: 0, oldest_due_s: 0 }

const database = await openForFile(createTestDatabase())
const ledger = buildLedger(database.db, clock)
afterEach(() => sql`truncate webhook_dispatch_open, webhook_queue, event_queue, webhook_fan_out`.execute(database.db))

/** Adds `count` waiting rows of a webhook, the n-th due `n * seconds` ago; and its place in the queue. */
async function wait(webhook: WebhookId, { count, seconds }: { count: number; seconds: number }, isHeld = false) {
  await sql`
    insert into webhook_dispatch_open
      (document_id, webhook, event_id, event, status, attempts, next_attempt_at, created_at, updated_at)
    select gen_random_uuid(), ${webhook}::uuid, gen_random_uuid(), 'contract.create', 'pending', 0,
      ${now}::timestamptz - n * ${seconds}::float8 * interval '1 second', ${now}, ${now}
    from generate_series(1, ${count}::int) n`.execute(database.db)
  await sql`
    insert into webhook_queue (webhook, visit_at, is_held) values (${webhook}, ${now}, ${isHeld})
    on conflict do nothing`.execute(database.db)
}

/** Adds rows of a webhook that a worker posts since `seconds`. */
const fly = (webhook: WebhookId, { count, seconds }: { count: number; seconds: number }) =>
  sql`
    insert into webhook_dispatch_open
      (document_id, webhook, event_id, event, status, attempts, lease_owner, last_attempt_at, created_at, updated_at)
    select gen_random_uuid(), ${webhook}::uuid, gen_random_uuid(), 'contract.create', 'pending', 1, 'worker',
      ${now}::timestamptz - ${seconds}::float8 * interval '1 second', ${now}, ${now}
    from generate_series(1, ${count}::int) n`.execute(database.db)

describe('the depth of the queue', () => {
  test('is nothing where nothing waits', async () => {
    expect(await readQueueDepth(database.db, now)).toEqual({
      ...{ unrouted: 0, oldest_unrouted_s: 0, retry: { waiting: 0, next_attempt_at: null } },
      lanes: { fast: EMPTY, slow: EMPTY, throttled: EMPTY },
    })
  })

  test('tells the lanes apart, what is due from what waits for the schedule, and leaves out what rests', async () => {
    const [fast, slow, resting] = [await ledger.addWebhook(), await ledger.addWebhook(), await ledger.addWebhook()]
    const throttled = await ledger.addWebhook({ maxPerSecond: 1 })
    await wait(fast, { count: 3, seconds: 10 })
    await fly(fast, { count: 2, seconds: 2 - 0.001 })
    await wait(slow, { count: 5, seconds: 20 })
    await fly(slow, { count: 1, seconds: 2 })
    await fly(slow, { count: 3, seconds: 1 })
    await wait(throttled, { count: 7, seconds: 1 })
    await sql`update webhook_queue set free_at = ${now} where webhook = ${throttled}`.execute(database.db)
    await wait(resting, { count: 11, seconds: 1 }, true)
    await wait(fast, { count: 13, seconds: -60 })
    const depth = await readQueueDepth(database.db, now)
    expect(depth).toEqual({
      ...{ unrouted: 0, oldest_unrouted_s: 0 },
      lanes: {
        fast: { waiting: 3, in_flight: 2, oldest_due_s: 30 },
        slow: { waiting: 5, in_flight: 4, oldest_due_s: 100 },
        // It waits since it was to be visited.
        throttled: { waiting: 7, in_flight: 0, oldest_due_s: 0 },
      },
      retry: { waiting: 13, next_attempt_at: new Date(now.getTime() + 60_000) },
    })
  })

  test('leaves out webhooks that were switched off or deleted while rows of them wait', async () => {
    const [off, gone] = [await ledger.addWebhook(), await ledger.addWebhook()]
    await wait(off, { count: 2, seconds: 5 })
    await wait(gone, { count: 2, seconds: 5 })
    await sql`update webhook set is_actived = false where document_id = ${off}`.execute(database.db)
    await sql`update webhook set deleted_at = ${now} where document_id = ${gone}`.execute(database.db)
    expect((await readQueueDepth(database.db, now)).lanes.fast).toEqual(EMPTY)
  })

  test('ends at the limit in each lane, and costs a small multiple of it', async () => {
    const [ROWS, LIMIT] = [5_000, 200]
    const [fast, slow] = [await ledger.addWebhook(), await ledger.addWebhook()]
    await wait(fast, { count: ROWS, seconds: 1 })
    await wait(fast, { count: ROWS, seconds: -1 })
    await wait(slow, { count: ROWS, seconds: 1 })
    await fly(slow, { count: ROWS, seconds: 5 })
    await sql`
      with recorded as (
        insert into event_occurrence (document_id, event, resource, action, created_at)
        select gen_random_uuid(), 'contract.create', 'contract', 'create', ${now}::timestamptz - interval '7 seconds'
        from generate_series(1, ${ROWS}::int) n returning document_id
      )
      insert into event_queue select document_id from recorded`.execute(database.db)
    await sql`analyze webhook_dispatch_open, webhook_queue, event_queue, event_occurrence, webhook`.execute(database.db)
    expect(await readQueueDepth(database.db, now, LIMIT)).toMatchObject({
      ...{ unrouted: LIMIT, oldest_unrouted_s: 7, retry: { waiting: LIMIT } },
      lanes: {
        fast: { waiting: LIMIT, in_flight: 0, oldest_due_s: ROWS },
        slow: { waiting: LIMIT, in_flight: LIMIT, oldest_due_s: ROWS },
      },
    })
    const explained = await explainStatements(database, (db) => readQueueDepth(db, now, LIMIT))
    const read = explained.flatMap(({ nodes }) => nodes).reduce((sum, node) => sum + countRowsRead(node), 0)
    expect(read).toBeGreaterThan(4 * LIMIT)
    expect(read).toBeLessThan(9 * LIMIT)
  })
})

/** Rows that a plan step read from a table or an index, including filtered ones. */
function countRowsRead(node: PlanNode & { 'Rows Removed by Filter'?: number }): number {
  if (!node['Relation Name'] || !node['Node Type'].includes('Scan')) return 0
  return ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 1)
}

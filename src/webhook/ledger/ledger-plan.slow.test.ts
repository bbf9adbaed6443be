import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { explainStatements, type PlanNode } from '../../../test/harness/plan/explain.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { ListFilter } from '../../http/listing/filter.ts'
import { type ListFields, parseListing } from '../../http/listing/listing.ts'
import { findListed } from '../../http/listing/page.ts'
import { listDispatches } from './dispatch.store.ts'

const SUCCESSES = 5_000
const FAILURES = 100
const PAGE = 21

const database = await openForFile(createTestDatabase())
const ledger = buildLedger(database.db, buildManualClock())
const webhook = await ledger.addWebhook()
await ledger.addDispatches(webhook, { count: FAILURES, status: 'exhausted' })
await ledger.addDispatches(webhook, { count: SUCCESSES, status: 'success' })
// Rows of a service come one after the other.
await database.pool.query(`
    update webhook_dispatch_ended d set created_at = d.created_at + made.n * interval '1 ms'
    from (select document_id, row_number() over (order by document_id) as n from webhook_dispatch_ended) made
    where made.document_id = d.document_id`)
await database.pool.query('vacuum analyze')

/** How many rows of tables a page of the list reads. */
async function countRead(filters: ListFilter[]): Promise<number> {
  const fields: ListFields = { status: { type: 'text' }, created_at: { type: 'timestamp', sortable: true } }
  const listing = { ...parseListing({ page_size: PAGE - 1 }, fields), filters }
  const [explained] = await explainStatements(database, (db) =>
    findListed(db, { ...listDispatches(db, filters, 'all'), listing, fields }),
  )
  const read = (node: PlanNode) =>
    node['Relation Name']
      ? ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 1)
      : 0
  return (explained?.nodes ?? []).reduce((sum, node) => sum + read(node), 0)
}

describe('a page of the ledger', () => {
  test.for<[string, ListFilter[], number]>([
    ['everything', [], 2 * PAGE],
    ['successes', [{ field: 'status', operator: 'eq', values: ['success'] }], 2 * PAGE],
    ['one other status', [{ field: 'status', operator: 'eq', values: ['exhausted'] }], FAILURES],
    ['several other statuses', [{ field: 'status', operator: 'in', values: ['exhausted', 'failed'] }], FAILURES],
    ['all but successes', [{ field: 'status', operator: 'ne', values: ['success'] }], FAILURES],
  ])('of %s reads what it returns, not the ledger', async ([, filters, most]) => {
    expect(await countRead(filters)).toBeLessThanOrEqual(most)
  })
})

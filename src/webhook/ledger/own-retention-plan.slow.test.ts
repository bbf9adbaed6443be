import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { explainStatements, type PlanNode } from '../../../test/harness/plan/explain.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId } from '../../base/id.ts'
import { deleteOwnEvents, deletePassedEvents } from '../../event/recording/event-removal.store.ts'
import { listOwnRetentions } from '../../identity/account/limit/own-retention.store.ts'
import type { WalkPosition } from '../../postgres/own-retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { deleteOwnMessages } from '../../realtime/delivery/settle.store.ts'
import { deleteOwnDispatches, deletePassedDispatches } from './removal.store.ts'

const ACCOUNTS = 200
const ROWS_EACH = 25
const LIMIT = 50
const EDGE = new Date('2026-09-11T00:00:00.000Z')

const database = await openForFile(createTestDatabase({ isOwn: true }))
const { pool } = database
const accounts = Array.from({ length: ACCOUNTS }, () => randomUUID() as AccountId)
await pool.query(
  `insert into account (document_id, name, created_at, updated_at) select x, 'Acme', now(), now() from unnest($1::uuid[]) x`,
  [accounts],
)
await pool.query(
  `insert into account_limit (account, webhooks, ledger_retention_days, created_at, updated_at)
     select x, 5, case when n <= 2 then 7 end, now(), now() from unnest($1::uuid[]) with ordinality as a (x, n)`,
  [accounts],
)
// The accounts take turns in the order of time.
const rows = `select x as account, $2::timestamptz - (g * ${ACCOUNTS} + n) * interval '1 ms' as at
    from generate_series(1, ${ROWS_EACH}) g, unnest($1::uuid[]) with ordinality as a (x, n)`
const given = [accounts, EDGE]
await pool.query(
  `insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, is_test,
       created_at, updated_at, ended_at)
     select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'a.b', account, 'success', 1, false, at, at, at
     from (${rows}) r order by at`,
  given,
)
await pool.query(
  `insert into event_occurrence (document_id, event, account, resource, action, created_at, routed_at)
     select gen_random_uuid(), 'a.b', account, 'a', 'b', at, at from (${rows}) r order by at`,
  given,
)
await pool.query(
  `insert into realtime_message_ended (document_id, account, event, status, attempts, results, created_at, ended_at, fence)
     select gen_random_uuid(), account, 'a.b', 'published', 1, 1, at, at, 1 from (${rows}) r order by at`,
  given,
)
await pool.query('vacuum analyze')

/** How many rows of a table the statement reads. */
async function countRead(table: string, work: (db: Database) => Promise<unknown>): Promise<number> {
  const explained = await explainStatements(database, work)
  expect(explained).toHaveLength(1)
  const read = (node: PlanNode) =>
    node['Relation Name'] === table || node['Index Name']?.startsWith(table)
      ? ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 1)
      : 0
  return (explained[0]?.nodes ?? []).reduce((sum, node) => sum + read(node), 0)
}

const own = () => accounts.slice(0, 2).map((account) => ({ account, before: EDGE }))
const auditBefore = new Date(0)

/** Each of these: the table, the statement for accounts of their own, and that of a page around others. */
const STEPS: [
  string,
  (db: Database) => Promise<unknown>,
  ((db: Database, after: WalkPosition, longer: AccountId[]) => Promise<unknown>)?,
][] = [
  [
    'webhook_dispatch_ended',
    (db) => deleteOwnDispatches(db, own(), LIMIT),
    (db, after, longer) =>
      deletePassedDispatches(db, { after: after.at, afterId: after.id, before: EDGE, longer, limit: LIMIT }),
  ],
  [
    'event_occurrence',
    (db) => deleteOwnEvents(db, { own: own(), auditBefore, limit: LIMIT }),
    (db, after, longer) =>
      deletePassedEvents(db, { after: after.at, afterId: after.id, before: EDGE, longer, auditBefore, limit: LIMIT }),
  ],
  ['realtime_message_ended', (db) => deleteOwnMessages(db, own(), LIMIT)],
]

test.each(STEPS)('deleting rows of accounts in %s reads a batch of each, not those of others', async (table, ofOwn) => {
  // Selected, and deleted by their ids.
  expect(await countRead(table, ofOwn)).toBeLessThanOrEqual(8 * LIMIT)
})

test.each(STEPS.filter(([, , ofPage]) => ofPage))(
  'a page of %s reads itself, however many rows of accounts that keep longer are before it',
  async (table, _, ofPage) => {
    const after = { at: new Date(EDGE.getTime() - (ACCOUNTS * ROWS_EACH) / 2), id: randomUUID() }
    expect(await countRead(table, (db) => ofPage!(db, after, accounts))).toBeLessThanOrEqual(8 * LIMIT)
    expect(await countRead(table, (db) => ofPage!(db, after, accounts.slice(1)))).toBeLessThanOrEqual(8 * LIMIT)
  },
)

test('the accounts with a retention of their own are found without those that have other limits', async () => {
  expect(await listOwnRetentions(database.db)).toHaveLength(2)
  // A bitmap counts them in the index and in the table.
  expect(await countRead('account_limit', listOwnRetentions)).toBeLessThanOrEqual(4)
})

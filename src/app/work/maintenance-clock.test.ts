import { Kysely, PostgresDialect } from 'kysely'
import pino from 'pino'
import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { addLedgerRows, addWebhook } from '../../../test/harness/delivery/ledger-rows.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { followDatabaseClock, SKEW_TRUSTED_MS } from '../../base/database-clock.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { DB } from '../../postgres/statement/tables.generated.ts'
import { buildMaintenance, type SweepReport } from './maintenance.ts'

const DAY_MS = 24 * 3_600_000
const OLD_MS = 40 * DAY_MS

const app = await openForFile(createTestApp())

/** Accounts with a retention of their own, each with this number of days; its ids. */
async function addOwnRetentions(days: readonly number[]): Promise<string[]> {
  const accounts: string[] = []
  for (const ledger_retention_days of days) {
    const account = (await app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
    await app.admin('PATCH', `/api/v3/identity/account/${account}/limit`, { ledger_retention_days })
    accounts.push(account)
  }
  return accounts
}

/** A maintenance on a machine whose clock a test sets, and old ended rows, each with an attempt, and as many audit entries. */
async function openSweep(count: number, db: Database = app.database.db) {
  const { pool } = app.database
  await pool.query('truncate webhook_dispatch_ended, webhook_attempt, audit_log, account_limit')
  const webhook = await addWebhook(app)
  const ids = await addLedgerRows(app, { webhook, status: 'success', createdAgeMs: OLD_MS, count })
  await pool.query(
    `insert into webhook_attempt (dispatch, attempt, attempt_trigger, started_at, duration_ms, worker)
     select x, 1, 'schedule', $2, 1, 'worker-a' from unnest($1::uuid[]) x`,
    [ids, new Date(app.clock.now() - OLD_MS)],
  )
  await pool.query(
    `insert into audit_log (document_id, action, outcome, created_at)
     select gen_random_uuid(), 'contract.create', 'success', $1 from generate_series(1, $2)`,
    [new Date(app.clock.now() - 400 * DAY_MS), count],
  )
  const databaseMs = app.clock.now()
  const machine = buildManualClock(databaseMs)
  const time = followDatabaseClock(machine, () => 0)
  time.observe({ sentAtMs: 0, receivedAtMs: 0, databaseMs })
  const reports: SweepReport[] = []
  const hooks = { onSwept: (report: SweepReport) => void reports.push(report), onAsked: () => {} }
  const maintenance = buildMaintenance({
    ...{ db, clock: time, keyring: app.app.keyring, workerId: 'worker-a', logger: pino({ level: 'silent' }) },
    config: { webhookLedgerRetentionDays: 30, auditRetentionDays: 365 },
    isTrusted: () => {
      hooks.onAsked()
      return time.verdict() !== 'distrusted'
    },
    onSwept: (report) => hooks.onSwept(report),
  })
  const countLeft = async () => {
    const { rows } = await pool.query(`
      select (select count(*)::int from webhook_dispatch_ended) as dispatches,
        (select count(*)::int from webhook_attempt) as attempts, (select count(*)::int from audit_log where action = 'contract.create') as entries`)
    return Object.values(rows[0])
  }
  return { maintenance, machine, databaseMs, reports, hooks, countLeft }
}

test('a sweep deletes by the clock of the database, and counts dispatches, attempts and entries apart', async () => {
  const { maintenance, machine, databaseMs, reports, countLeft } = await openSweep(3)
  // Ten seconds off are borne, and decide nothing.
  machine.set(databaseMs + SKEW_TRUSTED_MS)
  expect(await maintenance.sweep()).toMatchObject({ dispatches: 3, attempts: 3, auditEntries: 3 })
  expect(await countLeft()).toEqual([0, 0, 0])
  // Each step is known from the start, with 0.
  expect(reports).toHaveLength(1)
  expect(Object.values(reports[0]!).every((count) => count === 0)).toBe(true)
})

test.each([SKEW_TRUSTED_MS + 1, -SKEW_TRUSTED_MS - 1, 45 * DAY_MS, -DAY_MS])(
  'a sweep of a machine that is %s ms ahead deletes nothing',
  async (aheadMs) => {
    const { maintenance, machine, databaseMs, countLeft } = await openSweep(3)
    machine.set(databaseMs + aheadMs)
    const report = await maintenance.sweep()
    expect(Object.values(report).every((count) => count === 0)).toBe(true)
    expect(await countLeft()).toEqual([3, 3, 3])
  },
)

test('a sweep ends after the statement that runs when the clock becomes wrong', async () => {
  const { maintenance, machine, databaseMs, hooks, countLeft } = await openSweep(2_500)
  let asked = 0
  hooks.onAsked = () => {
    asked += 1
    // Before the first step and after its first batch the clock is right.
    if (asked === 3) machine.set(databaseMs + DAY_MS)
  }
  expect(await maintenance.sweep()).toMatchObject({ dispatches: 2_000, auditEntries: 0 })
  expect(await countLeft()).toEqual([500, 500, 2_500])
})

test('a machine with a wrong clock deletes nothing of accounts with a retention of their own', async () => {
  const { maintenance, machine, databaseMs, countLeft } = await openSweep(3)
  const [shorter, longer] = await addOwnRetentions([1, 45])
  const own =
    'update webhook_dispatch_ended set account = $1 where document_id = (select min(document_id::text)::uuid from webhook_dispatch_ended where account is null)'
  for (const account of [shorter, longer]) await app.database.pool.query(own, [account])
  machine.set(databaseMs + 45 * DAY_MS)
  const report = await maintenance.sweep()
  expect(Object.values(report).every((count) => count === 0)).toBe(true)
  expect(await countLeft()).toEqual([3, 3, 3])
  machine.set(databaseMs)
  expect(await maintenance.sweep()).toMatchObject({ dispatches: 2, attempts: 2 })
})

test('a sweep around accounts that keep longer ends after the statement that runs when the clock becomes wrong', async () => {
  const { maintenance, machine, databaseMs, hooks, countLeft } = await openSweep(2_500)
  await addOwnRetentions([45])
  let asked = 0
  hooks.onAsked = () => {
    asked += 1
    if (asked === 3) machine.set(databaseMs + DAY_MS)
  }
  expect(await maintenance.sweep()).toMatchObject({ dispatches: 2_000, auditEntries: 0 })
  expect(await countLeft()).toEqual([500, 500, 2_500])
})

test('a round reads the retentions of accounts once, and makes no other statement more without any', async () => {
  const sent: string[] = []
  const { pool } = app.database
  const watched = new Kysely<DB>({
    dialect: new PostgresDialect({ pool }),
    log: ({ query }) => void sent.push(query.sql),
  })
  const { maintenance } = await openSweep(3, watched)
  await maintenance.sweep()
  const count = (part: string) => sent.filter((sql) => sql.includes(part)).length
  const names = ['from account_limit', 'unnest($', 'page as materialized', 'delete from webhook_dispatch_ended']
  expect(names.map(count)).toEqual([1, 0, 0, 1])
  await addOwnRetentions([1, 45])
  sent.length = 0
  await maintenance.sweep()
  expect(names.map(count)).toEqual([1, 3, 4, 3])
})

import pino from 'pino'
import { expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { addLedgerRow, addLedgerRows, type LedgerRowSpec } from '../../../test/harness/delivery/ledger-rows.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { systemRandom } from '../../base/random.ts'
import { FORGET_AFTER_MS } from '../../identity/throttle/login-throttle.ts'

const DAY_MS = 24 * 3_600_000

const app = await openForFile(createTestApp())

/** Empties what the tests fill. To truncate would make new files for each table and index. */
const EMPTY = [
  ...[
    'webhook_event',
    'webhook',
    'webhook_dispatch_open',
    'webhook_dispatch_ended',
    'webhook_attempt',
    'webhook_queue',
  ],
  ...['event_queue', 'event_occurrence', 'delivery_worker', 'idempotency_key', 'rate_limit', 'login_throttle'],
  ...['webhook_delivery_minute', 'session'],
]
  .map((table) => `delete from ${table};`)
  .join(' ')

/** A webhook, into whose ledger a test writes rows of any age; everything of the tests before is gone. */
async function startFixture(given: TestApp = app) {
  const { pool } = given.database
  await pool.query(EMPTY)
  const at = (ageMs: number) => new Date(given.clock.now() - ageMs)
  const addWebhook = async (): Promise<string> => {
    const { rows } = await pool.query(
      `insert into webhook (document_id, url, is_global, created_at, updated_at)
       values (gen_random_uuid(), 'https://hooks.example.com/', true, $1, $1) returning document_id as id`,
      [at(0)],
    )
    return rows[0].id
  }
  const webhook = await addWebhook()
  return {
    app: given,
    webhook,
    addWebhook,
    at,
    addEvent: async (ageMs: number, isRouted = true) => {
      const { rows } = await pool.query(
        `with recorded as (
           insert into event_occurrence (document_id, event, resource, action, created_at, routed_at)
           values (gen_random_uuid(), 'contract.create', 'contract', 'create', $1, $2) returning document_id, routed_at
         ), queued as (insert into event_queue select document_id from recorded where routed_at is null)
         select document_id as id from recorded`,
        [at(ageMs), isRouted ? at(ageMs) : null],
      )
      return rows[0].id as string
    },
    addDispatch: async (eventId: string, status: string, ageMs: number, rest: Partial<LedgerRowSpec> = {}) =>
      addLedgerRow(given, { webhook, eventId, status, createdAgeMs: ageMs, ...rest }),
    addDispatches: async (count: number, status: string, ageMs: number) =>
      addLedgerRows(given, { webhook, status, createdAgeMs: ageMs, count }),
    countRows: async (table: string, condition = 'true') =>
      (await pool.query(`select count(*) as n from ${table} where ${condition}`)).rows[0].n as number,
  }
}

test('ledger rows and their events are kept for 30 days to the millisecond, and not one longer', async () => {
  const fixture = await startFixture()
  const kept = await fixture.addEvent(30 * DAY_MS)
  await fixture.addDispatch(kept, 'success', 30 * DAY_MS)
  const gone = await fixture.addEvent(30 * DAY_MS + 1)
  await fixture.addDispatch(gone, 'success', 30 * DAY_MS + 1)
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ dispatches: 1, events: 1 })
  expect(await fixture.countRows('webhook_dispatch', `event_id = '${kept}'`)).toBe(1)
  expect(await fixture.countRows('event_occurrence', `document_id = '${kept}'`)).toBe(1)
  expect(await fixture.countRows('event_occurrence', `document_id = '${gone}'`)).toBe(0)
  fixture.app.clock.advance(1)
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ dispatches: 1, events: 1 })
})

test('WEBHOOK_LEDGER_RETENTION_DAYS moves that edge', async () => {
  await using own = await createTestApp({ env: { WEBHOOK_LEDGER_RETENTION_DAYS: '2' } })
  const fixture = await startFixture(own)
  await fixture.addDispatch(await fixture.addEvent(2 * DAY_MS), 'failed', 2 * DAY_MS)
  await fixture.addDispatch(await fixture.addEvent(2 * DAY_MS + 1), 'failed', 2 * DAY_MS + 1)
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ dispatches: 1, events: 1 })
})

test('every ended status goes with age; a row that waits or is being posted never does, nor its event', async () => {
  const fixture = await startFixture()
  const ended = ['success', 'exhausted', 'failed', 'cancelled']
  for (const status of ended) await fixture.addDispatch(await fixture.addEvent(400 * DAY_MS), status, 400 * DAY_MS)
  for (const status of ['pending', 'retrying'])
    await fixture.addDispatch(await fixture.addEvent(400 * DAY_MS), status, 400 * DAY_MS)
  await fixture.addDispatch(await fixture.addEvent(400 * DAY_MS), 'retrying', 400 * DAY_MS, { leasedForMs: 1 })
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ dispatches: 4, events: 4 })
  expect(await fixture.countRows('webhook_dispatch')).toBe(3)
  expect(await fixture.countRows('event_occurrence', `created_at < '${fixture.at(DAY_MS).toISOString()}'`)).toBe(3)
})

test('an old event stays while one of its rows is younger, and while no router has seen it', async () => {
  const fixture = await startFixture()
  const event = await fixture.addEvent(40 * DAY_MS)
  await fixture.addDispatch(event, 'success', 40 * DAY_MS)
  await fixture.addDispatch(event, 'success', 10 * DAY_MS)
  const unrouted = await fixture.addEvent(40 * DAY_MS, false)
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ dispatches: 1, events: 0 })
  expect(await fixture.countRows('event_occurrence', `document_id in ('${event}', '${unrouted}')`)).toBe(2)
})

test('attempts go with their row', async () => {
  const fixture = await startFixture()
  await fixture.addDispatch(await fixture.addEvent(40 * DAY_MS), 'success', 40 * DAY_MS)
  await fixture.app.database.pool.query(
    `insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms)
     select document_id, 1, 'schedule', 'w', created_at, 3 from webhook_dispatch`,
  )
  await fixture.app.app.maintenance.sweep()
  expect(await fixture.countRows('webhook_attempt')).toBe(0)
})

test('one sweep removes more than one batch, and passes over what another transaction holds', async () => {
  const fixture = await startFixture()
  const { pool } = fixture.app.database
  await fixture.addDispatches(2500, 'success', 31 * DAY_MS)
  const other = await pool.connect()
  await other.query('begin')
  const held = await other.query(
    'select document_id from webhook_dispatch_ended order by document_id limit 1 for update',
  )
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ dispatches: 2499 })
  await other.query('rollback')
  other.release()
  expect((await pool.query('select document_id from webhook_dispatch')).rows).toEqual(held.rows)
})

test('the changes of the counts of webhooks become one row', async () => {
  const fixture = await startFixture()
  await fixture.addWebhook()
  await fixture.app.app.maintenance.sweep()
  expect(await fixture.countRows('webhook_count')).toBe(1)
  expect(await fixture.countRows('webhook_count', 'active = 2')).toBe(1)
})

test('what still waits for a deleted webhook is cancelled and counted, and nothing of a living one', async () => {
  const fixture = await startFixture()
  const other = await fixture.addWebhook()
  const event = await fixture.addEvent(0)
  for (const status of ['pending', 'retrying', 'success']) await fixture.addDispatch(event, status, 0)
  await fixture.app.database.pool.query('update webhook set deleted_at = $2 where document_id = $1', [
    fixture.webhook,
    fixture.at(0),
  ])
  await fixture.addDispatch(event, 'pending', 0, { webhook: other })
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ cancelled: 2 })
  expect(await fixture.countRows('webhook_dispatch', `status = 'cancelled' and ended_at is not null`)).toBe(2)
  expect(await fixture.countRows('webhook_dispatch', `status = 'pending'`)).toBe(1)
  expect(
    await fixture.countRows('webhook_delivery_minute', `status = 'cancelled' and came = 2 and deliveries = 2`),
  ).toBe(1)
})

test('what was routed to a webhook while it was purged is deleted with its attempts and its place in the queue', async () => {
  const fixture = await startFixture()
  const { pool } = fixture.app.database
  const other = await fixture.addWebhook()
  const event = await fixture.addEvent(0)
  await fixture.addDispatch(event, 'pending', 0)
  await fixture.addDispatch(event, 'retrying', 0)
  await fixture.addDispatch(event, 'pending', 0, { webhook: other })
  await pool.query(
    `insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms)
     select document_id, 1, 'schedule', 'w', created_at, 3 from webhook_dispatch_open`,
  )
  await pool.query('delete from webhook where document_id = $1', [fixture.webhook])
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ orphans: 2 })
  expect(await fixture.countRows('webhook_dispatch', `webhook = '${other}'`)).toBe(1)
  expect(await fixture.countRows('webhook_dispatch')).toBe(1)
  expect(await fixture.countRows('webhook_attempt')).toBe(1)
  // A statement that began before the purge may still queue another row behind the same place.
  fixture.app.clock.advance(3_600_000)
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ orphans: 0 })
  expect(await fixture.countRows('webhook_queue', `webhook = '${fixture.webhook}'`)).toBe(1)
  fixture.app.clock.advance(1)
  await fixture.app.app.maintenance.sweep()
  expect(await fixture.countRows('webhook_queue', `webhook = '${fixture.webhook}'`)).toBe(0)
  expect(await fixture.countRows('webhook_queue', `webhook = '${other}'`)).toBe(1)
})

test('a worker is kept for an hour after its lease ended, and as long as it has claims that nobody took back', async () => {
  const fixture = await startFixture()
  const { pool } = fixture.app.database
  const add = (id: string, ageMs: number) =>
    pool.query('insert into delivery_worker (worker_id, lease_until) values ($1, $2)', [id, fixture.at(ageMs)])
  await add('long gone', 3_600_001)
  await add('just gone', 3_600_000)
  await fixture.addDispatch(await fixture.addEvent(0), 'pending', 0, { leasedForMs: -7_200_000 })
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ workers: 1 })
  const { rows } = await pool.query('select worker_id from delivery_worker order by 1')
  expect(rows.map((row) => row.worker_id)).toEqual(['just gone', 'somebody'])
})

/** Each of these: a table, its column of time, other columns, how old it may be, and whether that instant itself is kept. */
test.each([
  ['idempotencyKeys', 'idempotency_key', DAY_MS, false],
  ['rateWindows', 'rate_limit', 600_000, true],
  ['loginThrottles', 'login_throttle', FORGET_AFTER_MS, true],
  ['sessions', 'session', 30 * DAY_MS, true],
  ['factorChallenges', 'factor_challenge', 0, true],
] as const)('%s are swept when their time has passed, and not before', async (name, table, keptMs, isEdgeKept) => {
  const fixture = await startFixture()
  const { pool } = fixture.app.database
  const insert = (time: Date) => {
    switch (table) {
      case 'idempotency_key':
        return pool.query(
          `insert into idempotency_key (caller, route, key, body_hash, created_at) values ('c', 'r', gen_random_uuid()::text, '\\x00', $1)`,
          [time],
        )
      case 'rate_limit':
        return pool.query(`insert into rate_limit (bucket, window_started_at, hits) values ('b', $1, 1)`, [time])
      case 'login_throttle':
        return pool.query(
          `insert into login_throttle (email_hash, address_hash, failures, last_failure_at) values ($2, '', 1, $1)`,
          [time, systemRandom.bytes(32)],
        )
      case 'factor_challenge':
        return pool.query(
          `insert into factor_challenge (challenge_hash, purpose, expires_at, created_at) values ($2, 'sign-in', $1, $1)`,
          [time, systemRandom.bytes(32)],
        )
      case 'session':
        return pool.query(
          `insert into session (document_id, "user", expires_at, auth_time, last_used_at, created_at, updated_at)
           values (gen_random_uuid(), $2, $1, $1, $1, $1, $1)`,
          [time, fixture.app.adminId],
        )
    }
  }
  const oldest = isEdgeKept ? keptMs : keptMs - 1
  await insert(fixture.at(oldest))
  await insert(fixture.at(oldest + 1))
  const before = await fixture.countRows(table)
  expect((await fixture.app.app.maintenance.sweep())[name]).toBe(1)
  expect(await fixture.countRows(table)).toBe(before - 1)
})

test('a session that others were opened from stays until they went', async () => {
  const fixture = await startFixture()
  const insert = async (parent: string | null, ageMs: number) =>
    (
      await fixture.app.database.pool.query(
        `insert into session (document_id, "user", parent, expires_at, auth_time, last_used_at, created_at, updated_at)
         values (gen_random_uuid(), $2, $3, $1, $1, $1, $1, $1) returning document_id as id`,
        [fixture.at(ageMs), fixture.app.adminId, parent],
      )
    ).rows[0].id
  await insert(await insert(null, 40 * DAY_MS), 10 * DAY_MS)
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ sessions: 0 })
  fixture.app.clock.advance(21 * DAY_MS)
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ sessions: 1 })
  expect(await fixture.app.app.maintenance.sweep()).toMatchObject({ sessions: 1 })
  expect(await fixture.countRows('session')).toBe(0)
})

test('a step that fails is logged by its name and keeps no other from being made', async () => {
  const lines: { msg: string; step?: string }[] = []
  const logger = pino({ level: 'error' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  await using own = await createTestApp({ logger })
  const fixture = await startFixture(own)
  await fixture.addDispatch(await fixture.addEvent(40 * DAY_MS), 'success', 40 * DAY_MS)
  await fixture.app.database.pool.query('alter table webhook_dispatch_ended rename to elsewhere')
  await fixture.app.database.pool.query(
    `insert into login_throttle (email_hash, address_hash, failures, last_failure_at) values ('\\x00', '', 1, $1)`,
    [fixture.at(2 * FORGET_AFTER_MS)],
  )
  const report = await fixture.app.app.maintenance.sweep()
  expect(report).toMatchObject({ dispatches: 0, loginThrottles: 1 })
  const failed = lines.filter((line) => line.msg.startsWith('maintenance failed'))
  expect(failed.map((line) => line.step)).toEqual(['dispatches', 'cancelled', 'unpulled'])
})

test('runs at once and then every minute, and ends when it is stopped', async () => {
  const clock = buildManualClock()
  const sleeps: number[] = []
  const watched = {
    ...clock,
    sleep: (ms: number, signal?: AbortSignal) => {
      sleeps.push(ms)
      return clock.sleep(ms, signal)
    },
  }
  await using own = await createTestApp({ clock: watched })
  const fixture = await startFixture(own)
  const add = async () => fixture.addDispatch(await fixture.addEvent(40 * DAY_MS), 'success', 40 * DAY_MS)
  await add()
  const running = own.app.maintenance.run()
  await expect.poll(() => sleeps).toEqual([60_000])
  expect(await fixture.countRows('webhook_dispatch')).toBe(0)
  await add()
  clock.advance(60_000)
  await expect.poll(() => sleeps).toEqual([60_000, 60_000])
  expect(await fixture.countRows('webhook_dispatch')).toBe(0)
  own.app.maintenance.stop()
  await running
})

test('two sweeps at once share the work', async () => {
  const fixture = await startFixture()
  await fixture.addDispatches(1500, 'success', 31 * DAY_MS)
  const sweep = (app: TestApp) => app.app.maintenance.sweep()
  const reports = await Promise.all([sweep(fixture.app), sweep(fixture.app)])
  expect(reports.reduce((sum, report) => sum + report.dispatches!, 0)).toBe(1500)
})

test('flows of a sign-in and one-time codes are deleted by the first sweep after they expired', async () => {
  const fixture = await startFixture()
  const { pool } = app.database
  await pool.query('truncate login_flow, login_code')
  for (const [hash, ageMs] of [
    ['\\x01', 1],
    ['\\x02', -1_000],
  ]) {
    const expiresAt = fixture.at(Number(ageMs))
    await pool.query(
      `insert into login_flow (state_hash, provider, purpose, redirect_url, is_deep_link, is_bound, secret, expires_at,
         created_at)
       values ($1, 'google', 'sign-in', 'https://app.example.com/', false, false, '', $2, $2)`,
      [hash, expiresAt],
    )
    await pool.query(
      `insert into login_code (code_hash, purpose, "user", expires_at, created_at) values ($1, 'link', $2, $3, $3)`,
      [hash, app.adminId, expiresAt],
    )
  }
  expect(await app.app.maintenance.sweep()).toMatchObject({ loginFlows: 1, loginCodes: 1 })
  expect(await fixture.countRows('login_flow')).toBe(1)
  expect(await fixture.countRows('login_code')).toBe(1)
})

import { expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { addLedgerRows, addWebhook, clearLedger } from '../../../../test/harness/delivery/ledger-rows.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const DAY_MS = 24 * 3_600_000

let webhook: string

const app = await openForFile(createTestApp())

const at = (ageMs: number) => new Date(app.clock.now() - ageMs)
const sweep = () => app.app.maintenance.sweep()

async function startAccount(days?: number): Promise<string> {
  const account = (await app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
  if (days !== undefined) await setDays(account, days)
  return account
}

async function setDays(account: string, days: number | null) {
  const answer = await app.admin('PATCH', `/api/v3/identity/account/${account}/limit`, { ledger_retention_days: days })
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
}

/** An empty ledger, without the events of the calls that prepared it. */
async function startLedger() {
  await clearLedger(app)
  webhook = await addWebhook(app)
  await app.database.pool.query('truncate event_occurrence, event_queue')
}

/** An event of an account of an age, with an ended row and an attempt of it. */
async function addDelivered(account: string | null, ageMs: number): Promise<void> {
  const { pool } = app.database
  const { rows } = await pool.query(
    `insert into event_occurrence (document_id, event, account, resource, action, created_at, routed_at)
     values (gen_random_uuid(), 'contract.create', $1, 'contract', 'create', $2, $2) returning document_id`,
    [account, at(ageMs)],
  )
  const eventId = rows[0].document_id
  const ids = await addLedgerRows(app, { webhook, status: 'success', eventId, createdAgeMs: ageMs, count: 1 })
  await pool.query('update webhook_dispatch_ended set account = $1 where document_id = any($2)', [account, ids])
  await pool.query(
    `insert into webhook_attempt (dispatch, attempt, attempt_trigger, started_at, duration_ms, worker)
     select x, 1, 'schedule', $2, 1, 'worker-a' from unnest($1::uuid[]) x`,
    [ids, at(ageMs)],
  )
}

/** Ages in ms of the rows, of the events and of the attempts that an account has left. */
async function readAges(account: string | null) {
  const { rows } = await app.database.pool.query(
    `select 'row' as kind, created_at from webhook_dispatch_ended where account is not distinct from $1
     union all select 'event', created_at from event_occurrence where account is not distinct from $1 and routed_at is not null
     union all select 'attempt', a.started_at from webhook_attempt a
       join webhook_dispatch_ended d on d.document_id = a.dispatch where d.account is not distinct from $1
     order by 1, 2`,
    [account],
  )
  const of = (kind: string) =>
    rows.filter((row) => row.kind === kind).map((row) => app.clock.now() - row.created_at.getTime())
  expect(of('event')).toEqual(of('row'))
  expect(of('attempt')).toEqual(of('row'))
  return of('row')
}

test('each account is kept for its own days to the millisecond, shorter and longer, and all others for those of the service', async () => {
  const [shorter, longer, other] = [await startAccount(2), await startAccount(90), await startAccount()]
  await startLedger()
  const edges = [
    [shorter, 2],
    [longer, 90],
    [other, 30],
    [null, 30],
  ] as const
  for (const [account, days] of edges)
    for (const ageMs of [days * DAY_MS, days * DAY_MS + 1]) await addDelivered(account, ageMs)
  expect(await sweep()).toMatchObject({ dispatches: 4, attempts: 4, events: 4 })
  for (const [account, days] of edges) expect(await readAges(account)).toEqual([days * DAY_MS])
  expect(await sweep()).toMatchObject({ dispatches: 0, attempts: 0, events: 0 })
  app.clock.advance(1)
  expect(await sweep()).toMatchObject({ dispatches: 4, attempts: 4, events: 4 })
  for (const [account] of edges) expect(await readAges(account)).toEqual([])
})

test('a change holds from the next sweep on, in both directions, and null is the setting of the service', async () => {
  const account = await startAccount(90)
  await startLedger()
  for (const days of [80, 50, 20, 5]) await addDelivered(account, days * DAY_MS)
  await sweep()
  expect(await readAges(account)).toEqual([80, 50, 20, 5].map((days) => days * DAY_MS))
  await setDays(account, 60)
  await sweep()
  expect(await readAges(account)).toEqual([50, 20, 5].map((days) => days * DAY_MS))
  await setDays(account, null)
  await sweep()
  expect(await readAges(account)).toEqual([20, 5].map((days) => days * DAY_MS))
  await setDays(account, 5)
  await sweep()
  expect(await readAges(account)).toEqual([5 * DAY_MS])
  await setDays(account, 4)
  await setDays(account, 365)
  await sweep()
  expect(await readAges(account)).toEqual([5 * DAY_MS])
})

test('a deleted account is kept no longer than others, and a shorter one as short as before', async () => {
  const [longer, shorter] = [await startAccount(90), await startAccount(2)]
  await startLedger()
  for (const days of [40, 20]) await addDelivered(longer, days * DAY_MS)
  await sweep()
  expect(await readAges(longer)).toEqual([40 * DAY_MS, 20 * DAY_MS])
  for (const days of [3, 1]) await addDelivered(shorter, days * DAY_MS)
  for (const account of [longer, shorter])
    expect((await app.admin('DELETE', `/api/v3/identity/account/${account}`)).status).toBe(200)
  await sweep()
  expect(await readAges(longer)).toEqual([20 * DAY_MS])
  expect(await readAges(shorter)).toEqual([DAY_MS])
})

test('what a walk has passed is found again: a row that was locked, and one that ended late', async () => {
  const [longer, other] = [await startAccount(90), await startAccount()]
  await startLedger()
  await addDelivered(longer, 50 * DAY_MS)
  await addDelivered(other, 45 * DAY_MS)
  const holder = await app.database.pool.connect()
  await holder.query('begin')
  await holder.query('select from webhook_dispatch_ended where account = $1 for update', [other])
  expect(await sweep()).toMatchObject({ dispatches: 0, events: 0 })
  await holder.query('rollback')
  holder.release()
  expect(await sweep()).toMatchObject({ dispatches: 1, events: 1 })
  await addDelivered(other, 60 * DAY_MS)
  expect(await sweep()).toMatchObject({ dispatches: 1, events: 1 })
  expect(await readAges(longer)).toEqual([50 * DAY_MS])
})

test('more rows than one statement takes go in one sweep, beside as many that are kept', async () => {
  const [longer, shorter] = [await startAccount(90), await startAccount(1)]
  await startLedger()
  const { pool } = app.database
  const own = 'update webhook_dispatch_ended set account = $1 where document_id = any($2)'
  const add = (count: number, days: number) =>
    addLedgerRows(app, { webhook, status: 'success', createdAgeMs: days * DAY_MS, count })
  // Equal instants: a page ends amid them.
  await pool.query(own, [longer, await add(1_500, 40)])
  await add(1_500, 40)
  await pool.query(own, [shorter, await add(1_500, 2)])
  expect(await sweep()).toMatchObject({ dispatches: 3_000 })
  const { rows } = await pool.query('select account, count(*)::int as n from webhook_dispatch_ended group by 1')
  expect(rows).toEqual([{ account: longer, n: 1_500 }])
})

test('realtime messages of an account that keeps less than their three days go with it', async () => {
  const [shorter, longer] = [await startAccount(1), await startAccount(90)]
  const { pool } = app.database
  await pool.query('truncate realtime_message_ended')
  for (const account of [shorter, longer])
    for (const ageMs of [DAY_MS, DAY_MS + 1, 3 * DAY_MS, 3 * DAY_MS + 1])
      await pool.query(
        `insert into realtime_message_ended (document_id, account, event, status, attempts, results, created_at, ended_at, fence)
         values (gen_random_uuid(), $1, 'contract.create', 'published', 1, 1, $2, $2, 1)`,
        [account, at(ageMs)],
      )
  expect(await sweep()).toMatchObject({ realtimeMessages: 4 })
  const { rows } = await pool.query('select account, created_at from realtime_message_ended order by created_at')
  const agesOf = (account: string) =>
    rows.filter((row) => row.account === account).map((row) => app.clock.now() - row.created_at.getTime())
  expect(agesOf(longer)).toEqual([3 * DAY_MS, DAY_MS + 1, DAY_MS])
  expect(agesOf(shorter)).toEqual([DAY_MS])
})

test('the audit entry in the row of an event outlives the event of a short retention', async () => {
  const account = await startAccount(2)
  await startLedger()
  const { pool } = app.database
  const { rows } = await pool.query(
    `insert into event_occurrence (document_id, event, account, resource, action, created_at, routed_at, published_by,
       publish_request)
     values (gen_random_uuid(), 'order.paid', $1, 'order', 'paid', $2, $2, $3, gen_random_uuid()) returning document_id`,
    [account, at(3 * DAY_MS), app.adminId],
  )
  expect(await sweep()).toMatchObject({ events: 1 })
  const kept = await pool.query('select action from audit_log where document_id = $1', [rows[0].document_id])
  expect(kept.rows).toEqual([{ action: 'event.publish' }])
})

test('while the limits cannot be read, no ledger row is deleted', async () => {
  const longer = await startAccount(90)
  await startLedger()
  await addDelivered(longer, 40 * DAY_MS)
  await addDelivered(null, 40 * DAY_MS)
  await app.database.pool.query('alter table account_limit rename to elsewhere')
  expect(await sweep()).toMatchObject({ dispatches: 0, events: 0 })
  await app.database.pool.query('alter table elsewhere rename to account_limit')
  expect(await sweep()).toMatchObject({ dispatches: 1, events: 1 })
  expect(await readAges(longer)).toEqual([40 * DAY_MS])
})

test('the retention is from 1 to 3650 days, and shown with the setting where it is null', async () => {
  const account = await startAccount()
  const path = `/api/v3/identity/account/${account}/limit`
  for (const days of [0, 3651, 1.5, -1]) {
    const { status, body } = await app.admin('PATCH', path, { ledger_retention_days: days })
    expect(status).toBe(422)
    expect(JSON.stringify(body)).toContain('ledger_retention_days')
  }
  expect((await app.admin('GET', path)).body.data).toMatchObject({
    limits: { ledger_retention_days: 30 },
    own: { ledger_retention_days: null },
  })
  for (const days of [1, 3650]) await setDays(account, days)
  expect((await app.admin('GET', path)).body.data).toMatchObject({
    limits: { ledger_retention_days: 3650 },
    own: { ledger_retention_days: 3650 },
  })
})

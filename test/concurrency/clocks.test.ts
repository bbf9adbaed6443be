import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { countSeen, type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { BUSY_MS, waitFor } from '../harness/run/wait.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A machine whose clock is ahead of the real one, by what a test sets. */
function buildMachine(aheadMs: number): Clock & { aheadMs: number } {
  const machine = { aheadMs, now: () => systemClock.now() + machine.aheadMs, sleep: systemClock.sleep }
  return machine
}

/** Writes what is a day old: an event, its ended dispatch and the attempt of it, each ten times. */
async function fillLedger({ database, account }: DeliveryFixture): Promise<void> {
  await database.pool.query(
    `with events as (
       insert into event_occurrence (document_id, event, account, resource, action, created_at, routed_at)
       select gen_random_uuid(), 'contract.create', $1, 'contract', 'create', now() - interval '1 day', now()
       from generate_series(1, 10) returning document_id
     ), webhooks as (
       insert into webhook (document_id, url, is_global, is_actived, created_at, updated_at)
       values (gen_random_uuid(), 'https://gone.example.com/', true, false, now(), now()) returning document_id
     ), dispatches as (
       insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, created_at,
         updated_at, ended_at)
       select gen_random_uuid(), w.document_id, e.document_id, 'contract.create', $1, 'success', 1,
         now() - interval '1 day', now() - interval '1 day', now() - interval '1 day'
       from events e cross join webhooks w returning document_id
     )
     insert into audit_log (document_id, action, outcome, created_at)
     select gen_random_uuid(), 'contract.create', 'success', now() - interval '1 day' from dispatches`,
    [account],
  )
}

async function countLedger({ database }: DeliveryFixture): Promise<number[]> {
  const { rows } = await database.pool.query(`
    select (select count(*)::int from event_occurrence where created_at < now() - interval '1 hour') as events,
      (select count(*)::int from webhook_dispatch_ended) as dispatches,
      (select count(*)::int from audit_log where created_at < now() - interval '1 hour') as entries`)
  return Object.values(rows[0])
}

/** Waits until the process of a wrong clock has said so to the others. */
async function waitForSkew({ database }: DeliveryFixture, count = 1): Promise<void> {
  const text = 'select count(*)::int as n from process_skew'
  await waitFor('the report of the skew', async () => (await database.pool.query(text)).rows[0].n === count)
}

const readReadiness = async (url: string) => {
  const response = await fetch(`${url}/readyz`)
  return { status: response.status, body: (await response.json()) as { status: string } }
}

const SHIFTED = ['--import', join(PROJECT_ROOT, 'test', 'harness', 'process', 'shifted-clock.ts')]

test('a process whose machine is 45 days ahead deletes nothing, claims nothing, and says so', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  await fillLedger(fixture)
  const wrong = await fixture.startLocal({ machine: buildMachine(45 * DAY_MS) })
  await wrong.waitForLog(/clock not trusted, nothing is claimed or deleted: see docs\/operations.md, clock skew/)
  await fixture.subscribe(wrong, receiver)
  await fixture.change(wrong)
  await waitForSkew(fixture)
  await waitFor('the routing', async () => (await fixture.readLedger()).some((row) => row.status === 'pending'))

  expect(await countLedger(fixture)).toEqual([10, 10, 10])
  expect(receiver.requests).toEqual([])
  expect(await readReadiness(wrong.url)).toMatchObject({
    status: 503,
    body: { status: 'clock of the machine is 3888000.0 s ahead of the database' },
  })
  const health = await wrong.call('GET', '/api/v3/health/component/clock')
  expect(health.body.data).toMatchObject({ status: 'degraded', details: { skewed_processes: 1, resting_processes: 1 } })
  const headers = { authorization: `Bearer ${TEST_METRICS_TOKEN}` }
  const metrics = await (await fetch(`${wrong.url}/metrics`, { headers })).text()
  expect(metrics).toMatch(/^clock_skew_seconds 38(?:88000|87999\.9\d*)/m)

  // Another process, with the right time, does what it left.
  await fixture.startLocal()
  await receiver.waitFor(1)
  await fixture.waitForLedger(11, ['success'])
  expect(await countLedger(fixture)).toEqual([10, 11, 10])
})

test('a real process goes on through a step of its clock of 45 days, which it reports, without a claim or a deletion', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  await fillLedger(fixture)
  const service = await fixture.start({
    nodeArguments: SHIFTED,
    env: { TEST_CLOCK_SHIFTS_MS: `3000,${45 * DAY_MS}` },
  })
  await service.waitForOutput(/"clock differs from the database: see docs\/operations.md, clock skew"/)
  await fixture.subscribe(service, receiver)
  const changedAtMs = Date.now()
  await fixture.change(service)
  const [{ headers } = { headers: {} as Record<string, string> }] = await receiver.waitFor(1)
  // Signed with the time of the database, in whole seconds, not with that of the machine, which is 3 s ahead.
  const signedAtMs = Number(headers['webhook-timestamp']) * 1_000
  expect(signedAtMs).toBeLessThanOrEqual(Date.now())
  expect(signedAtMs).toBeGreaterThan(changedAtMs - 1_100)

  service.signal('SIGUSR2')
  await service.waitForOutput(/"clock not trusted, nothing is claimed or deleted/)
  expect(await readReadiness(service.url)).toMatchObject({ status: 503 })
  await fixture.change(service)
  expect(await countLedger(fixture)).toEqual([10, 11, 10])
  expect(receiver.requests).toHaveLength(1)
  // Log lines are dated by the database's clock too.
  const last = service.stderr().split('\n').at(-2) ?? '{}'
  expect(Math.abs(Date.parse(JSON.parse(last).time) - Date.now())).toBeLessThan(60_000)
})

test.each([
  ['3 s ahead', 3_000],
  ['1 h behind', -HOUR_MS],
  ['40 s ahead', 40_000],
])(
  'an event goes to a webhook that was made before it, through processes one of which is %s',
  async (_name, aheadMs) => {
    await using fixture = await openDeliveryFixture()
    const receiver = await fixture.receive()
    const wrong = await fixture.startLocal({ roles: 'api', machine: buildMachine(aheadMs) })
    const right = await fixture.startLocal({ roles: 'api,dispatcher' })
    // Made through the wrong one, and told through the right one; and the other way round.
    await fixture.subscribe(wrong, receiver)
    await fixture.change(right)
    await fixture.subscribe(right, receiver)
    await fixture.change(wrong)
    const rows = await fixture.waitForLedger(3, ['success'])
    expect(rows).toHaveLength(3)
    await receiver.waitFor(3)
  },
)

test.each([
  ['40 s ahead', 40_000],
  ['1 h ahead', HOUR_MS],
])('claims of a living worker stay its own beside a process that is %s', async (_name, aheadMs) => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const living = await fixture.startLocal({ roles: 'api,dispatcher' })
  await fixture.subscribe(living, receiver)
  const answer = Promise.withResolvers<void>()
  receiver.behave({ kind: 'wait', until: answer.promise })
  await fixture.change(living)
  await receiver.waitFor(1)
  await fixture.startLocal({ roles: 'dispatcher', machine: buildMachine(aheadMs) })
  const text = 'select count(*)::int as n from delivery_worker'
  await waitFor('both workers', async () => (await fixture.database.pool.query(text)).rows[0].n === 2)
  await waitForSkew(fixture)
  answer.resolve()
  const [row] = await fixture.waitForLedger(1, ['success'])
  expect(row).toMatchObject({ attempts: 1 })
  expect(countSeen(receiver).get(row!.id)).toEqual([1])
})

test('a session that is issued on a machine an hour behind is valid on every other, for as long as any', async () => {
  await using fixture = await openDeliveryFixture()
  const wrong = await fixture.startLocal({ roles: 'api', machine: buildMachine(-HOUR_MS) })
  const right = await fixture.startLocal({ roles: 'api' })
  const text = 'select email from "user" where document_id = $1'
  const { rows } = await fixture.database.pool.query(text, [fixture.database.administrator])
  const credentials = { email: rows[0].email, password: 'correct horse battery' }
  const askedAtMs = Date.now()
  const login = await wrong.call('POST', '/api/v3/auth/login/local', credentials, { authorization: '' })
  expect(login.status).toBe(200)
  const { jwt } = login.body.data
  const { iat } = JSON.parse(Buffer.from(jwt.split('.')[1], 'base64url').toString())
  expect(iat * 1_000).toBeLessThanOrEqual(Date.now() + 1_000)
  expect(iat * 1_000).toBeGreaterThan(askedAtMs - 2_000)
  const read = await right.call('GET', '/api/v3/webhook/webhook', undefined, { authorization: `Bearer ${jwt}` })
  expect(read.status).toBe(200)
})

test('a process becomes ready again, and works, when the clock of its machine is mended', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const machine = buildMachine(-HOUR_MS)
  const service = await fixture.startLocal({ machine })
  await waitForSkew(fixture)
  expect((await readReadiness(service.url)).body.status).toMatch(
    /^clock of the machine is 36\d\d\.\d s behind the database$/,
  )
  await fixture.subscribe(service, receiver)
  await fixture.change(service)
  machine.aheadMs = 0
  await receiver.waitFor(1)
  await service.waitForLog(/clock agrees with the database again/)
  expect((await readReadiness(service.url)).status).toBe(200)
  await waitForSkew(fixture, 0)
})

test.each([
  ['2.5 s', 2_500, /clock differs from the database/, 200],
  ['11 s', 11_000, /clock not trusted/, 503],
])('a machine that steps %s ahead is reported, and works beyond it within seconds of its repair', async (...row) => {
  const [, aheadMs, line, readiness] = row
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const machine = buildMachine(0)
  const service = await fixture.startLocal({ machine })
  await fixture.subscribe(service, receiver)
  await waitFor('readiness', async () => (await readReadiness(service.url)).status === 200)
  machine.aheadMs = aheadMs
  await service.waitForLog(line)
  expect((await readReadiness(service.url)).status).toBe(readiness)
  await fixture.change(service)
  if (readiness === 200) await receiver.waitFor(1)
  machine.aheadMs = 0
  const mendedAt = performance.now()
  await service.waitForLog(/clock agrees with the database again/)
  await waitFor('readiness', async () => (await readReadiness(service.url)).status === 200)
  await receiver.waitFor(1)
  expect(performance.now() - mendedAt).toBeLessThan(30_000 + BUSY_MS)
  const [ledgerRow] = await fixture.waitForLedger(1, ['success'])
  expect(ledgerRow).toMatchObject({ attempts: 1 })
})

test('when the clock of the database steps by 45 days, nothing is deleted or taken back, and all go on when it is mended', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  await fillLedger(fixture)
  const database = { aheadMs: 0 }
  const databaseAheadMs = () => database.aheadMs
  const first = await fixture.startLocal({ databaseAheadMs })
  const second = await fixture.startLocal({ roles: 'dispatcher,maintenance', databaseAheadMs })
  await fixture.subscribe(first, receiver)
  const answer = Promise.withResolvers<void>()
  receiver.behaveNext({ kind: 'wait', until: answer.promise })
  await fixture.change(first)
  await receiver.waitFor(1)

  expect(first.logged()).not.toContain('stepped')
  database.aheadMs = 45 * DAY_MS
  for (const service of [first, second]) await service.waitForLog(/clock not trusted/)
  answer.resolve()
  await fixture.waitForLedger(11, ['success'])
  database.aheadMs = 0
  for (const service of [first, second]) {
    await service.waitForLog(/clock agrees with the database again/)
    await service.waitForLog(
      /"step_seconds":-388\d{4}(?:\.\d+)?,"msg":"clock of the database stepped, nothing is deleted/,
    )
  }
  await fixture.change(first)
  await receiver.waitFor(2)
  const rows = await fixture.waitForLedger(12, ['success'])
  expect(rows.every((row) => row.attempts === 1)).toBe(true)
  expect(await countLedger(fixture)).toEqual([10, 12, 10])
})

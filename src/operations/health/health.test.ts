import { beforeEach, describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { addLedgerRow, addWebhook, clearLedger } from '../../../test/harness/delivery/ledger-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { checkWebhookOut } from './health.ts'
import { FACTS_LIFETIME_MS } from './webhook-out.ts'

const COMPONENT = '/api/v3/health/component/integration/webhook-out'
const DAY_MS = 24 * 3_600_000

let webhook: string

const app = await openForFile(createTestApp())
beforeEach(async () => {
  await clearLedger(app)
  webhook = await addWebhook(app)
  await app.settle()
})

/** The current state of the component; over HTTP it may be 5 s old. */
const read = () => checkWebhookOut(app.database.db, new Date(app.clock.now()), undefined)

/** The component over HTTP, after the cached answer expired. */
async function ask(path = COMPONENT) {
  app.clock.advance(FACTS_LIFETIME_MS)
  return (await app.anonymous('GET', path)).body
}

async function addExhausted(count: number, endedAgeMs = 0) {
  for (let n = 0; n < count; n += 1) await addLedgerRow(app, { webhook, status: 'exhausted', endedAgeMs })
}

const disable = (reason: string | null, isActived = false) =>
  app.database.pool.query('update webhook set is_actived = $2, disabled_reason = $3 where document_id = $1', [
    webhook,
    isActived,
    reason,
  ])

test('the component needs no token and has exactly its facts and the time of the check', async () => {
  app.clock.advance(FACTS_LIFETIME_MS)
  const answer = await app.anonymous('GET', COMPONENT)
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({
    data: {
      component: 'webhook-out',
      status: 'operational',
      checked_at: new Date(app.clock.now()).toISOString(),
      details: {
        ...{ exhausted_24h: 0, auto_disabled: 0, backlog: 0, oldest_pending_s: 0 },
        ...{ throttled: 0, oldest_throttled_s: 0 },
      },
    },
    message: expect.any(String),
  })
})

test('all callers share one answer for 5 s', async () => {
  const first = await ask()
  await addExhausted(10)
  app.clock.advance(FACTS_LIFETIME_MS - 1)
  const shared = await Promise.all(Array.from({ length: 20 }, () => app.anonymous('GET', COMPONENT)))
  expect(new Set(shared.map(({ body }) => JSON.stringify(body)))).toEqual(new Set([JSON.stringify(first)]))
  app.clock.advance(1)
  expect((await app.anonymous('GET', COMPONENT)).body.data).toMatchObject({
    status: 'degraded',
    checked_at: new Date(app.clock.now()).toISOString(),
  })
})

test('an exhausted delivery counts for exactly 24 h from its end, not from its creation', async () => {
  await addExhausted(9)
  await addLedgerRow(app, { webhook, status: 'exhausted', endedAgeMs: DAY_MS, createdAgeMs: 3 * DAY_MS })
  expect(await read()).toMatchObject({ status: 'degraded' })
  app.clock.advance(1)
  try {
    expect(await read()).toMatchObject({ status: 'operational', details: { exhausted_24h: 9 } })
  } finally {
    app.clock.set(app.clock.now() - 1)
  }
})

test('no other status counts as exhausted', async () => {
  for (const status of ['success', 'failed', 'cancelled']) {
    for (let n = 0; n < 10; n += 1) await addLedgerRow(app, { webhook, status, endedAgeMs: 0 })
  }
  expect(await read()).toMatchObject({ status: 'operational', details: { exhausted_24h: 0 } })
})

test.each([
  ['that the service disabled itself', 'consecutive-failures', false, 1],
  ['of before the release, which waits for its operator', 'legacy-secret-rotation-required', false, 0],
  ['that an operator switched off', null, false, 0],
  ['that is active again', 'consecutive-failures', true, 0],
] as const)('a webhook %s: %s counts %s', async (_what, reason, isActived, count) => {
  await disable(reason, isActived)
  expect(await read()).toMatchObject({
    status: count > 0 ? 'degraded' : 'operational',
    details: { auto_disabled: count },
  })
})

test('a deleted auto-disabled webhook does not count', async () => {
  await disable('consecutive-failures')
  await app.database.pool.query('update webhook set deleted_at = $1', [new Date(app.clock.now())])
  expect(await read()).toMatchObject({ status: 'operational', details: { auto_disabled: 0 } })
})

describe('work that waits', () => {
  test('for 299.999 s is operational, for 300 s degraded', async () => {
    await addLedgerRow(app, { webhook, status: 'pending', dueAgeMs: 299_999 })
    expect(await read()).toMatchObject({ status: 'operational', details: { backlog: 1, oldest_pending_s: 299 } })
    await addLedgerRow(app, { webhook, status: 'retrying', dueAgeMs: 300_000 })
    expect(await read()).toMatchObject({ status: 'degraded', details: { backlog: 2, oldest_pending_s: 300 } })
  })

  test('is due and unclaimed: a later retry and a POST in flight do not count', async () => {
    await addLedgerRow(app, { webhook, status: 'retrying', dueAgeMs: -60_000 })
    await addLedgerRow(app, { webhook, status: 'retrying', dueAgeMs: 600_000, leasedForMs: 30_000 })
    expect(await read()).toMatchObject({ status: 'operational', details: { backlog: 0, oldest_pending_s: 0 } })
  })

  test('for the limit of its webhook counts apart, however old it is, while the webhook is visited', async () => {
    await addLedgerRow(app, { webhook, status: 'pending', dueAgeMs: 7_200_000 })
    await addLedgerRow(app, { webhook, status: 'pending', dueAgeMs: 1_000 })
    const setVisit = (ms: number) =>
      app.database.pool.query('update webhook_queue set visit_at = $1, free_at = $1', [new Date(app.clock.now() + ms)])
    await app.database.pool.query('update webhook set max_per_second = 1')
    await setVisit(500)
    expect(await read()).toMatchObject({
      status: 'operational',
      details: { backlog: 0, oldest_pending_s: 0, throttled: 2, oldest_throttled_s: 7_200 },
    })
    // No dispatcher runs.
    await setVisit(-299_999)
    expect(await read()).toMatchObject({ status: 'operational', details: { oldest_pending_s: 299 } })
    await setVisit(-300_000)
    expect(await read()).toMatchObject({ status: 'degraded', details: { oldest_pending_s: 300 } })
  })

  test('for an inactive or deleted webhook does not count', async () => {
    await addLedgerRow(app, { webhook, status: 'pending', dueAgeMs: 600_000 })
    await disable(null)
    expect(await read()).toMatchObject({ status: 'operational', details: { backlog: 0 } })
  })

  test('for its routing counts, as without a running dispatcher', async () => {
    const event = (ageMs: number) =>
      app.database.pool.query(
        `with recorded as (
           insert into event_occurrence (document_id, event, resource, action, created_at)
           values (gen_random_uuid(), 'contract.create', 'contract', 'create', $1) returning document_id
         ) insert into event_queue select document_id from recorded`,
        [new Date(app.clock.now() - ageMs)],
      )
    await event(299_999)
    expect(await read()).toMatchObject({ status: 'operational', details: { backlog: 1, oldest_pending_s: 299 } })
    await event(300_000)
    expect(await read()).toMatchObject({ status: 'degraded', details: { backlog: 2, oldest_pending_s: 300 } })
    await app.settle()
    expect(await read()).toMatchObject({ status: 'operational', details: { backlog: 0, oldest_pending_s: 0 } })
  })

  test('for the parts of an event that goes to many counts as one for its routing does', async () => {
    await app.database.pool.query(
      `with recorded as (
         insert into event_occurrence (document_id, event, resource, action, created_at)
         values (gen_random_uuid(), 'contract.create', 'contract', 'create', $1) returning document_id
       ) insert into webhook_fan_out select document_id from recorded`,
      [new Date(app.clock.now() - 300_000)],
    )
    expect(await read()).toMatchObject({ status: 'degraded', details: { backlog: 1, oldest_pending_s: 300 } })
    await app.settle()
    expect(await read()).toMatchObject({ status: 'operational', details: { backlog: 0, oldest_pending_s: 0 } })
  })
})

test('the overall status is that of the worst component', async () => {
  expect((await ask('/api/v3/health')).data).toMatchObject({
    status: 'operational',
    components: [
      { component: 'webhook-out' },
      { component: 'provisioning' },
      { component: 'stored-secrets' },
      { component: 'clock' },
      { component: 'connections' },
    ],
  })
  await addExhausted(10)
  expect((await ask('/api/v3/health')).data).toMatchObject({
    status: 'degraded',
    components: [
      { component: 'webhook-out', status: 'degraded' },
      { component: 'provisioning', status: 'operational' },
      { component: 'stored-secrets', status: 'operational' },
      { component: 'clock', status: 'operational' },
      { component: 'connections', status: 'operational' },
    ],
  })
})

test('health contains no ids or addresses', async () => {
  await disable('consecutive-failures')
  await addExhausted(10)
  const text = JSON.stringify(await ask('/api/v3/health'))
  expect(text).toContain('degraded')
  expect(text).not.toContain(webhook)
  expect(text).not.toContain('example.com')
})

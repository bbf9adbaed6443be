import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TestCall } from '../../../test/harness/app/app.ts'
import { type DeliveryApp, openDelivery } from '../../../test/harness/app/delivery-app.ts'
import type { AccountId, WebhookId } from '../../base/id.ts'
import { foldOutcomes } from '../../webhook/activity/outcome.store.ts'
import { buildBreakdown, findBreakdownStart } from './breakdown.ts'
import type { Range } from './series.ts'

const WEBHOOK = '/api/v3/webhook/dashboard/webhook'
const EVENT = '/api/v3/webhook/dashboard/event'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

describe('the start of a breakdown', () => {
  const now = new Date(Date.UTC(2026, 8, 11, 12, 23, 30))
  test.each([
    ['1h', '2026-09-11T11:25:00.000Z'],
    ['24h', '2026-09-10T13:00:00.000Z'],
    ['7d', '2026-09-05T00:00:00.000Z'],
    ['30d', '2026-08-13T00:00:00.000Z'],
  ] as const)('of %s is %s', (range, start) => {
    expect(findBreakdownStart(range, now, 'all').toISOString()).toBe(start)
    expect(findBreakdownStart(range, now, 'webhook').toISOString()).toBe(
      range === '1h' ? '2026-09-11T11:00:00.000Z' : start,
    )
  })
})

test('a breakdown has the most frequent first, 50 event types at most, and says how many there are', () => {
  const types = Array.from({ length: 51 }, (_, index) => ({ measure: `event:t.${index}`, attempts: index, failed: 0 }))
  const breakdown = buildBreakdown([
    { measure: 'answer:timeout', attempts: 2, failed: 2 },
    { measure: 'answer:http_2xx', attempts: 5, failed: 0 },
    ...types,
  ])
  expect(breakdown).toMatchObject({ attempts: 7, failed: 2, eventTypes: 51 })
  expect(breakdown.answers.map(({ answer }) => answer)).toEqual(['http_2xx', 'timeout'])
  expect([breakdown.events.length, breakdown.events[0]?.event, breakdown.events.at(-1)?.event]).toEqual([
    50,
    't.50',
    't.1',
  ])
})

describe('over the API', () => {
  /** In the middle of 5 minutes, an hour and a day. */
  const attemptedAt = Date.UTC(2026, 8, 11, 12, 22, 30)
  let d: DeliveryApp
  let account: AccountId
  let own: WebhookId
  let broken: WebhookId
  /** Calls that may be refused, with a key that does not expire. */
  let call: TestCall

  beforeAll(async () => {
    d = await openDelivery()
    d.t.clock.set(attemptedAt)
    const key = { name: 'reads', permissions: ['webhook:*'] }
    call = d.t.callAs((await d.call('POST', '/api/v3/identity/api-key', key)).body.data.key)
    account = await makeAccount('Example')
    own = (await d.makeWebhook({ account })).id
    await d.call('POST', '/api/v3/contract/contract', { account, name: 'Lease', status: 'draft' })
    await d.pass(0)
    broken = (await d.makeWebhook({ events: ['contract.create', 'contract.update'] })).id
    d.receiver.behave({ kind: 'status', status: 503 })
    await d.emit(2)
    await d.emit(1, 'contract.update')
    await d.pass(0)
    await foldOutcomes(d.t.database.db, { limit: 1_000 })
  })
  afterAll(() => d?.[Symbol.asyncDispose]())

  const makeAccount = async (name: string): Promise<AccountId> =>
    (await d.call('POST', '/api/v3/identity/account', { name })).body.data.document_id
  const read = async (path: string, range: Range) => (await d.call('GET', `${path}?range=${range}`)).body.data

  test('the attempts of a webhook are told apart by answer and by event type', async () => {
    expect(await read(`${WEBHOOK}/${broken}`, '1h')).toEqual({
      range: '1h',
      since: '2026-09-11T11:00:00.000Z',
      attempts: 3,
      failed: 3,
      answers: [{ answer: 'http_5xx', attempts: 3 }],
      events: [
        { event: 'contract.create', attempts: 2, failed: 2 },
        { event: 'contract.update', attempts: 1, failed: 1 },
      ],
      event_types: 2,
    })
    const [activity] = (await d.call('GET', `${WEBHOOK}?webhook=${broken}`)).body.data
    expect(activity).toMatchObject({ retrying: 3, hours: [{ hour: '2026-09-11T12:00:00.000Z', retrying: 3 }] })
    const { answers } = (await d.call('GET', `${WEBHOOK}/${own}`)).body.data
    expect(answers).toEqual([{ answer: 'http_2xx', attempts: 1 }])
  })

  test('event types have the attempts of all webhooks, or of those of the accounts of the caller', async () => {
    const { events } = await read(EVENT, '24h')
    expect(events).toEqual([
      { event: 'contract.create', attempts: 3, failed: 2 },
      { event: 'contract.update', attempts: 1, failed: 1 },
    ])
    const viewer = await join([account])
    expect((await viewer('GET', EVENT)).body.data.events).toEqual([
      { event: 'contract.create', attempts: 1, failed: 0 },
    ])
    const stranger = await join([await makeAccount('Other')])
    expect((await stranger('GET', EVENT)).body.data.events).toEqual([])
  })

  test('a webhook that is deleted, of another account, or unknown is not found', async () => {
    const gone = (await d.makeWebhook()).id
    await d.call('DELETE', `/api/v3/webhook/webhook/${gone}`)
    for (const id of [gone, '00000000-0000-7000-8000-000000000000'])
      expect((await call('GET', `${WEBHOOK}/${id}`)).status).toBe(404)
    const viewer = await join([account])
    expect((await viewer('GET', `${WEBHOOK}/${own}`)).body.data.attempts).toBe(1)
    expect((await viewer('GET', `${WEBHOOK}/${broken}`)).status).toBe(404)
  })

  test.each([
    ['webhook:dashboard-breakdown', `${WEBHOOK}/00000000-0000-7000-8000-000000000000`],
    ['webhook:dashboard-events', EVENT],
  ])('the requests need a token, the permission %s, and a range', async (permission, path) => {
    expect((await d.t.anonymous('GET', path)).status).toBe(401)
    const member = await d.t.signInMember([])
    const refused = await member.call('GET', path)
    expect([refused.status, refused.body.detail]).toEqual([403, expect.stringContaining(permission)])
    expect((await call('GET', `${path}?range=2h`)).status).toBe(422)
  })

  async function join(accounts: AccountId[]) {
    const member = await d.t.signInMember(accounts)
    const roles = (await d.call('GET', '/api/v3/identity/role?filters=name|eq|account-viewer')).body.data
    for (const account of accounts) {
      const change = { user: member.userId, roles: [roles[0].document_id] }
      await d.call('PATCH', `/api/v3/identity/account/${account}/member`, change)
    }
    return member.call
  }

  // The last ones, in the order of time, which runs on from test to test.
  test.each([
    ['1h', HOUR_MS, 2],
    ['24h', HOUR_MS, 24],
    ['7d', DAY_MS, 7],
    ['30d', DAY_MS, 30],
  ] as const)('an attempt counts once in %s, until its sum leaves the range', async (range, stepMs, count) => {
    const leavesAt = (Math.floor(attemptedAt / stepMs) + count) * stepMs
    const attemptsAt = async (at: number) => {
      d.t.clock.set(at)
      await d.t.app.maintenance.sweep()
      return (await read(`${WEBHOOK}/${broken}`, range)).attempts
    }
    expect(await attemptsAt(leavesAt - 1)).toBe(3)
    expect(await attemptsAt(leavesAt)).toBe(0)
  })

  test('the maintenance widens the sums, and deletes them after 31 days', async () => {
    const countRows = async (table: string) => (await d.t.database.pool.query(`select from ${table}`)).rowCount
    const { rows } = await d.t.database.pool.query('select distinct width from webhook_breakdown')
    expect(rows).toEqual([{ width: 'day' }])
    expect([await countRows('webhook_outcome_hour'), await countRows('webhook_outcome_day')]).toEqual([0, 3])
    d.t.clock.set(Date.UTC(2026, 8, 11) + 31 * DAY_MS + 1)
    await d.t.app.maintenance.sweep()
    expect([await countRows('webhook_breakdown'), await countRows('webhook_outcome_day')]).toEqual([0, 0])
  })
})

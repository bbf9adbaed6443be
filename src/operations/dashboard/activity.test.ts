import { describe, expect, test } from 'vitest'
import { openDelivery } from '../../../test/harness/app/delivery-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId } from '../../base/id.ts'
import { foldOutcomes } from '../../webhook/activity/outcome.store.ts'
import { webhookSweeps } from '../../webhook/sweeps.ts'

const SERIES = '/api/v3/webhook/dashboard/series'
const WEBHOOKS = '/api/v3/webhook/dashboard/webhook'
const HOUR_MS = 3_600_000

const fold = () => foldOutcomes(d.t.database.db, { limit: 1_000 })

const d = await openForFile(openDelivery())
d.t.clock.set(Date.UTC(2026, 8, 11, 12, 20))
const account: AccountId = (await d.call('POST', '/api/v3/identity/account', { name: 'Example' })).body.data.document_id
const own = (await d.makeWebhook({ account })).id
await d.call('POST', '/api/v3/contract/contract', { account, name: 'Lease', status: 'draft' })
await d.pass(0)
const broken = (await d.makeWebhook({ url: `${d.receiver.origin}/broken` })).id
d.receiver.behave({ kind: 'status', status: 503 })
await d.emit()
await d.pass(0)
await fold()

test('attempts count once, by what they came to, in their bucket of each range', async () => {
  expect(await fold()).toBe(0)
  for (const [range, at] of [
    ['1h', '2026-09-11T12:20:00.000Z'],
    ['24h', '2026-09-11T12:00:00.000Z'],
    ['7d', '2026-09-11T12:00:00.000Z'],
    ['30d', '2026-09-11T00:00:00.000Z'],
  ]) {
    const { data } = (await d.call('GET', `${SERIES}?range=${range}`)).body
    expect(data, range).toMatchObject({ range, success: 1, retrying: 1, exhausted: 0, failed: 0 })
    expect(data.buckets.at(-1)).toMatchObject({ at, success: 1, retrying: 1, p50_ms: expect.any(Number) })
    expect(data.causes).toEqual([{ cause: 'http_5xx', attempts: 1 }])
  }
})

test('a member gets the attempts of the webhooks of its account, not those of global ones', async () => {
  const viewer = await join([account])
  const { data } = (await viewer('GET', `${SERIES}?range=24h`)).body
  expect(data).toMatchObject({ success: 1, retrying: 0, causes: [] })
  const other = (await d.call('POST', '/api/v3/identity/account', { name: 'Other' })).body.data.document_id
  const stranger = await join([other])
  expect((await stranger('GET', SERIES)).body.data).toMatchObject({ success: 0, p50_ms: null })
  const both = `${WEBHOOKS}?webhook=${own}&webhook=${broken}`
  expect((await viewer('GET', both)).body.data).toMatchObject([{ webhook: own, success: 1 }])
  expect((await stranger('GET', both)).body.data).toEqual([])
})

test('webhooks have their hours, in the order of the request, each once; unknown and deleted ones are left out', async () => {
  const gone = (await d.makeWebhook()).id
  await d.call('DELETE', `/api/v3/webhook/webhook/${gone}`)
  const ids = [broken, gone, '00000000-0000-7000-8000-000000000000', own, broken]
  const { data } = (await d.call('GET', `${WEBHOOKS}?${ids.map((id) => `webhook=${id}`).join('&')}`)).body
  const hour = '2026-09-11T12:00:00.000Z'
  expect(data).toMatchObject([
    { webhook: broken, success: 0, retrying: 1, failed: 0, hours: [{ hour, success: 0, retrying: 1, failed: 0 }] },
    {
      webhook: own,
      success: 1,
      retrying: 0,
      event_types: 2,
      last_attempt_at: expect.stringMatching(/^2026-09-11T12:20/),
    },
  ])
})

describe('the requests', () => {
  test.each([
    ['a range that is none', `${SERIES}?range=2h`],
    ['no webhook', WEBHOOKS],
    ['what is no id', `${WEBHOOKS}?webhook=billing`],
    ['201 webhooks', `${WEBHOOKS}?${Array(201).fill('webhook=00000000-0000-7000-8000-000000000000').join('&')}`],
  ])('with %s are a 422', async (_name, path) => {
    expect((await d.t.admin('GET', path)).status).toBe(422)
  })

  test.each([
    ['webhook:dashboard-series', SERIES],
    ['webhook:dashboard-webhooks', `${WEBHOOKS}?webhook=00000000-0000-7000-8000-000000000000`],
  ])('need the permission %s', async (permission, path) => {
    expect((await d.t.anonymous('GET', path)).status).toBe(401)
    const refused = await (await d.t.signInMember([])).call('GET', path)
    expect([refused.status, refused.body.detail]).toEqual([403, expect.stringContaining(permission)])
  })
})

test('minutes end after 2 hours, hours after 49, quarters of days after 8 days, days after 31', async () => {
  const sweep = webhookSweeps.find(({ counts }) => counts[0] === 'outcomes')
  const { pool, db } = d.t.database
  const left = async (at: string, afterMs: number) => {
    await sweep?.run({ db, now: new Date(Date.parse(at) + afterMs), limit: 1_000 } as never)
    const { rows } = await pool.query('select distinct width from webhook_outcome order by 1')
    return rows.map(({ width }) => width)
  }
  const [minute, hour, day] = ['2026-09-11T12:20:00Z', '2026-09-11T12:00:00Z', '2026-09-11T00:00:00Z'] as const
  const all = ['day', 'hour', 'minute', 'quarter']
  expect(await left(minute, 2 * HOUR_MS)).toEqual(all)
  expect(await left(minute, 2 * HOUR_MS + 1)).toEqual(all.filter((width) => width !== 'minute'))
  expect(await left(hour, 49 * HOUR_MS)).toEqual(['day', 'hour', 'quarter'])
  expect(await left(hour, 49 * HOUR_MS + 1)).toEqual(['day', 'quarter'])
  expect(await left(hour, 8 * 24 * HOUR_MS)).toEqual(['day', 'quarter'])
  expect(await left(hour, 8 * 24 * HOUR_MS + 1)).toEqual(['day'])
  expect(await left(day, 31 * 24 * HOUR_MS)).toEqual(['day'])
  expect(await left(day, 31 * 24 * HOUR_MS + 1)).toEqual([])
})

async function join(accounts: AccountId[]) {
  const { call, userId } = await d.t.signInMember(accounts)
  const roles = (await d.call('GET', '/api/v3/identity/role?filters=name|eq|account-viewer')).body.data
  for (const account of accounts)
    await d.call('PATCH', `/api/v3/identity/account/${account}/member`, { user: userId, roles: [roles[0].document_id] })
  return call
}

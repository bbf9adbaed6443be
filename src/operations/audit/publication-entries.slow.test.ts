import { expect, test } from 'vitest'
import { startContractFixture } from '../../../test/contract/contract-fixture.ts'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const LOG = '/api/v3/audit/log'
const DAY_MS = 24 * 3_600_000

const fixture = await openForFile(startContractFixture())
const type = { internal: 'parcel.send', account_scope: 'none' }
expect((await fixture.app.admin('POST', '/api/v3/webhook/event', type)).status).toBe(201)

/** Publishes `count` events in one request, and returns their ids. */
async function publish(count = 1): Promise<string[]> {
  const events = Array.from({ length: count }, (_, n) => ({ event: 'parcel.send', id: `p-${n}` }))
  const answer = await fixture.app.admin('POST', '/api/v3/webhook/publish', { events })
  expect(answer.status).toBe(202)
  return answer.body.data.events.map((event: { event_id: string }) => event.event_id)
}

const list = async (query: string) => {
  const { status, body } = await fixture.app.admin('GET', `${LOG}?${query}`)
  expect(status, JSON.stringify(body)).toBe(200)
  return body
}

const countRows = async (table: string, condition: string) => {
  const { rows } = await fixture.app.database.pool.query(`select count(*)::int as n from ${table} where ${condition}`)
  return rows[0].n
}

const OF_PUBLICATIONS = `action = 'event.publish'`

test('the entry of a publication is in the row of its first event, and is listed as any other', async () => {
  fixture.app.clock.advance(1_000)
  const since = new Date(fixture.app.clock.now()).toISOString()
  const answer = await fixture.app.admin('POST', '/api/v3/webhook/publish', { event: 'parcel.send', id: 'p-0' })
  const [id] = answer.body.data.events.map((event: { event_id: string }) => event.event_id)
  fixture.app.clock.advance(1_000)
  const [first] = await publish(3)
  expect(await countRows('audit_log', OF_PUBLICATIONS)).toBe(0)
  const { data } = await list(`filters=action|eq|event.publish&filters=created_at|gte|${since}`)
  expect(data).toMatchObject([{ document_id: first, detail: { events: 3 } }, { document_id: id }])
  const { user, api_key: apiKey } = data[0]
  expect(data[1]).toEqual({
    document_id: id,
    action: 'event.publish',
    outcome: 'success',
    user: expect.stringMatching(/./),
    session: null,
    api_key: expect.stringMatching(/./),
    client_id: null,
    portal_session: null,
    external_user: null,
    account: null,
    target: null,
    address: expect.stringMatching(/./),
    request_id: answer.headers['x-request-id'],
    detail: { events: 1 },
    count: 1,
    created_at: since,
    updated_at: since,
  })
  // Each member that can be filtered by finds it, and a value that it does not have does not.
  for (const filter of [
    `document_id|eq|${id}`,
    `request_id|eq|${data[1].request_id}`,
    `user|eq|${user}`,
    `api_key|eq|${apiKey}`,
    `address|eq|${data[1].address}`,
    'outcome|eq|success',
    'action|in|event.publish,account.create',
    'target|null|true',
    'session|null|true',
    `created_at|between|${since},${since}`,
  ]) {
    const found = (await list(`filters=${filter}&filters=action|eq|event.publish`)).data
    expect(
      found.map((entry: { document_id: string }) => entry.document_id),
      filter,
    ).toContain(id)
  }
  for (const filter of [`target|eq|${id}`, 'outcome|eq|failure', 'client_id|null|false', `session|eq|${id}`])
    expect((await list(`filters=${filter}&filters=document_id|eq|${id}`)).data, filter).toEqual([])
})

test('publications and other entries are one list: its order, its pages and its total', async () => {
  const entries: string[] = []
  fixture.app.clock.advance(1_000)
  const since = new Date(fixture.app.clock.now()).toISOString()
  for (let n = 0; n < 6; n += 1) {
    if (n % 2 === 0) entries.push(...(await publish()))
    else entries.push((await fixture.createAccount()).document_id)
    fixture.app.clock.advance(1)
  }
  for (const [sort, wanted] of [
    ['created_at', entries],
    ['-created_at', entries.toReversed()],
  ] as const) {
    const seen: string[] = []
    let cursor = ''
    do {
      const page = await list(`sort=${sort}&page_size=2&count=true&filters=created_at|gte|${since}${cursor}`)
      expect(page.pagination).toMatchObject({ total: 6, is_total_exact: true })
      seen.push(
        ...page.data.map((entry: { target: string | null; document_id: string }) => entry.target ?? entry.document_id),
      )
      cursor = page.pagination.next_cursor === null ? '' : `&cursor=${page.pagination.next_cursor}`
    } while (cursor !== '')
    expect(seen).toEqual(wanted)
  }
})

test('an entry outlives its event where the audit log is kept longer, and ends before it where shorter', async () => {
  const [id] = await publish()
  await fixture.app.settle()
  fixture.app.clock.advance(31 * DAY_MS)
  await using short = await createTestApp({
    ...{ database: fixture.app.database, clock: fixture.app.clock },
    env: { AUDIT_RETENTION_DAYS: '5', WEBHOOK_LEDGER_RETENTION_DAYS: '90' },
  })
  const before = (await fixture.app.database.pool.query('select * from audit_entry where document_id = $1', [id])).rows
  expect(before).toHaveLength(1)
  await fixture.app.app.maintenance.sweep()
  expect(await countRows('event_occurrence', `document_id = '${id}'`)).toBe(0)
  expect(await countRows('audit_log', OF_PUBLICATIONS)).toBeGreaterThan(0)
  const after = (await fixture.app.database.pool.query('select * from audit_entry where document_id = $1', [id])).rows
  expect(after).toEqual(before)
  const [kept] = await publish()
  fixture.app.clock.advance(6 * DAY_MS)
  expect((await short.app.maintenance.sweep()).auditEntries).toBeGreaterThan(0)
  expect(await countRows('event_occurrence', `document_id = '${kept}' and published_by is null`)).toBe(1)
  expect(await countRows('audit_entry', OF_PUBLICATIONS)).toBe(0)
})

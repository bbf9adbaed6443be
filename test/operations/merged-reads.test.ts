import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expectProblem, type Json } from '../contract/contract-fixture.ts'
import type { TestCall } from '../harness/app/app.ts'
import { type GroundPlace, type MergedGround, openMergedGround } from '../harness/carriage/merged-ground.ts'
import { type SimulatedProvider, startRealtimeProvider } from '../harness/realtime/realtime-provider.ts'

const START = Date.parse('2026-03-01T10:00:00.000Z')
const instant = (n: number) => new Date(START + n).toISOString()
const WEBHOOKS = '/api/v3/webhook/webhook'
const LEDGER = '/api/v3/webhook/dispatch'
const EVENTS = '/api/v3/webhook/event-occurrence'

let ground: MergedGround
let admin: TestCall
let provider: SimulatedProvider
/** An account in each database, and its webhook. */
let owners: { account: string; place: GroundPlace; webhook: string }[]

beforeAll(async () => {
  provider = await startRealtimeProvider(() => Date.now())
  ground = await openMergedGround(provider.env)
  admin = ground.merged.app.admin
  owners = []
  for (const place of [null, 'c1', 'c2'] as const) {
    const [account, webhook] = [await ground.addAccount(place), randomUUID()]
    owners.push({ account, place, webhook })
    await ground.add(place, 'webhook', [
      {
        ...{ document_id: webhook, url: `https://hooks.example.com/${place}`, name: `=hook ${place}`, account },
        ...{ secret_encrypted: 'v1.k.s', created_at: instant(0), updated_at: instant(0) },
      },
    ])
    // More than a batch of a merged export.
    const rows = Array.from({ length: 130 }, (_, n) => ({
      ...{ document_id: randomUUID(), webhook, event_id: randomUUID(), event: 'order.create', account },
      ...{ status: n % 3 === 0 ? 'exhausted' : 'success', attempts: 5, created_at: instant(n % 40) },
      ...{ updated_at: instant(n), ended_at: instant(n) },
    }))
    await ground.add(place, 'webhook_dispatch_ended', rows)
    await ground.add(place, 'audit_log', [
      {
        ...{ document_id: randomUUID(), action: 'webhook.create', outcome: 'success', target: webhook, account },
        ...{ detail: {}, created_at: instant(1) },
      },
    ])
  }
}, 300_000)
afterAll(async () => {
  await ground?.[Symbol.asyncDispose]()
  await provider?.close()
})

const accountsOf = (...numbers: number[]) => numbers.map((n) => owners[n]?.account as string)

test.each(['csv', 'json', 'ndjson'])('an export as %s is that of one database with the same rows', async (format) => {
  for (const path of [
    `${LEDGER}/export?format=${format}`,
    `${LEDGER}/export?format=${format}&sort=updated_at&filters=status|eq|exhausted`,
    `${WEBHOOKS}/export?format=${format}&sort=-url`,
  ]) {
    const expected = await ground.alone.app.admin('GET', path)
    const found = await admin('GET', path)
    expect(found.status).toBe(200)
    expect(found.body).toEqual(expected.body)
    expect(JSON.stringify(found.body).length).toBeGreaterThan(500)
  }
})

test('an export of a caller of two databases has no row of the third', async () => {
  const [there, here] = await Promise.all(
    [ground.merged, ground.alone].map((fixture) => fixture.signInWithRoles(accountsOf(0, 2), ['account-admin'])),
  )
  const [found, expected] = [await there?.call('GET', `${LEDGER}/export`), await here?.call('GET', `${LEDGER}/export`)]
  expect(found?.body).toEqual(expected?.body)
  expect(found?.body).toHaveLength(260)
})

test('an event that two databases have is listed once, and counted once', async () => {
  const [, owner] = owners
  const id = randomUUID()
  const event = {
    ...{ document_id: id, event: 'contract.create', account: owner?.account, resource: 'contract', action: 'create' },
    ...{ resource_id: 'of home', is_purge: false, created_at: instant(5) },
  }
  await ground.at(null).pool.query(
    `insert into event_occurrence (document_id, event, account, resource, action, resource_id, created_at)
     select document_id, event, account, resource, action, resource_id, created_at
     from jsonb_populate_record(null::event_occurrence, $1)`,
    [JSON.stringify(event)],
  )
  await ground.at('c1').pool.query(
    `insert into event_occurrence (document_id, event, account, resource, action, resource_id, created_at, origin)
     select document_id, event, account, resource, action, resource_id, created_at, 'home'
     from jsonb_populate_record(null::event_occurrence, $1)`,
    [JSON.stringify(event)],
  )
  const query = 'count=true&filters=resource_id|eq|of home'
  const { body } = await admin('GET', `${EVENTS}?${query}`)
  expect(body.data.map((row: Json) => row.document_id)).toEqual([id])
  expect(body.pagination).toMatchObject({ total: 1, is_total_exact: true, next_cursor: null })
})

test('the audit log has the entries of every database, also by an account that has moved on', async () => {
  const listed = await admin('GET', '/api/v3/audit/log?sort=created_at&filters=action|eq|webhook.create&count=true')
  expect(listed.body.data.map((row: Json) => row.target).toSorted()).toEqual(
    owners.map(({ webhook }) => webhook).toSorted(),
  )
  expect(listed.body.pagination.total).toBe(3)
  const [, owner] = owners
  const byAccount = await admin(
    'GET',
    `/api/v3/audit/log?filters=account|eq|${owner?.account}&filters=action|eq|webhook.create`,
  )
  expect(byAccount.body.data).toMatchObject([{ target: owner?.webhook }])
})

test('a total is a sum that is bounded, and is said to be so', async () => {
  const exact = await admin('GET', `${LEDGER}?count=true&page_size=1`)
  expect(exact.body.pagination).toMatchObject({ total: 390, is_total_exact: true })
  const many = (place: GroundPlace, webhook: string, account: string) =>
    ground.at(place).pool.query(
      `insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, created_at,
         updated_at, ended_at)
       select gen_random_uuid(), $1, gen_random_uuid(), 'many.rows', $2, 'success', 1, $3, $3, $3 from generate_series(1, 6000)`,
      [webhook, account, instant(50)],
    )
  for (const { place, webhook, account } of owners.slice(1)) await many(place, webhook, account)
  const bounded = await admin('GET', `${LEDGER}?count=true&page_size=1&filters=event|eq|many.rows`)
  expect(bounded.body.pagination).toMatchObject({ total: 10_000, is_total_exact: false })
  for (const { place } of owners.slice(1))
    await ground.at(place).pool.query(`delete from webhook_dispatch_ended where event = 'many.rows'`)
})

test('a bulk replay that may be over several databases is refused, and one that names its database is made there', async () => {
  const replay = (filters: string[], call = admin) =>
    call('POST', `${LEDGER}/replay`, { filters, confirm_duplicate: true, dry_run: true })
  const several = expectProblem(await replay(['status|eq|exhausted']), 422, 'validation_failed')
  expect(several.errors).toMatchObject([{ path: 'filters', code: 'several_databases' }])
  expect(several.detail).toContain('account|eq|<id>')
  for (const { account, webhook } of owners)
    for (const filter of [`account|eq|${account}`, `webhook|eq|${webhook}`]) {
      const { status, body } = await replay([filter, 'status|eq|exhausted'])
      expect([status, body.data.would_replay + body.data.would_skip]).toEqual([200, 44])
    }
  const { call } = await ground.merged.signInWithRoles(accountsOf(0, 1), ['account-admin'])
  expectProblem(await replay(['status|eq|exhausted'], call), 422, 'validation_failed')
  const own = await replay([`account|eq|${accountsOf(1)[0]}`, 'status|eq|exhausted'], call)
  expect(own.body.data.would_replay + own.body.data.would_skip).toBe(44)
  const foreign = await replay([`account|eq|${accountsOf(2)[0]}`, 'status|eq|exhausted'], call)
  expect(foreign.status).toBe(422)
})

test('a tenant of two databases gets nothing of a third account, by whatever filter', async () => {
  const { call } = await ground.merged.signInWithRoles(accountsOf(0, 1), ['account-admin'])
  const [, , stranger] = owners
  for (const filter of [
    `account|eq|${stranger?.account}`,
    `webhook|eq|${stranger?.webhook}`,
    `account|ne|${randomUUID()}`,
  ])
    for (const path of [LEDGER, EVENTS]) {
      if (path === EVENTS && filter.startsWith('webhook')) continue
      const { status, body } = await call('GET', `${path}?page_size=200&filters=${filter}`)
      expect(status, JSON.stringify(body)).toBe(200)
      expect(JSON.stringify(body)).not.toContain(stranger?.account)
      expect(JSON.stringify(body)).not.toContain(stranger?.webhook)
    }
  expectProblem(await call('GET', '/api/v3/audit/log'), 403, 'permission_denied')
})

test('a cursor, a filter or a sort that is wrong is refused as in one database', async () => {
  for (const query of [
    'cursor=nonsense',
    `cursor=${Buffer.from('["-created_at","2026-03-01T10:00:00.000Z","no id"]').toString('base64url')}`,
    'sort=name',
    'filters=%20elsewhere|nin|x',
    `filters=${'name|like|'.padEnd(5_000, 'x')}&filters=nothing|eq|1`,
  ]) {
    const [found, expected] = [
      await admin('GET', `${WEBHOOKS}?${query}`),
      await ground.alone.app.admin('GET', `${WEBHOOKS}?${query}`),
    ]
    expect([found.status, found.body.errors]).toEqual([422, expected.body.errors])
  }
})

test('a merged list counts once against the expensive reads of its caller', async () => {
  const query = `${LEDGER}?filters=attempts|gt|1&count=true&page_size=200`
  const refused = Promise.withResolvers<void>()
  let count = 0
  const lock = await ground.at('c2').pool.connect()
  await lock.query('begin; lock table webhook_dispatch_ended in access exclusive mode')
  const read = async () => {
    const { status } = await admin('GET', query)
    if (status === 429) count += 1
    if (count === 4) refused.resolve()
    return status
  }
  const asked = Promise.all(Array.from({ length: 16 }, read))
  // Two run and ten wait, in however many databases they read.
  await refused.promise
  await lock.query('commit')
  lock.release()
  expect((await asked).toSorted()).toEqual([...Array(12).fill(200), ...Array(4).fill(429)])
})

test('a channel of an account in a cell is resumed with the messages of home and of the cell', async () => {
  const [, owner, stranger] = owners
  const nowMs = ground.merged.app.clock.now()
  const ago = (ms: number) => new Date(nowMs - ms).toISOString()
  const publish = async (place: GroundPlace, account: string | undefined, ms: number) => {
    const [id, at] = [randomUUID(), ago(ms)]
    await ground.add(place, 'event_occurrence', [
      {
        ...{ document_id: id, event: 'order.create', account, resource: 'order', action: 'create', resource_id: id },
        ...{ is_purge: false, created_at: at },
      },
    ])
    await ground.add(place, 'realtime_message_ended', [
      {
        ...{ document_id: id, account, event: 'order.create', status: 'published', attempts: 1, results: 1, fence: 1 },
        ...{ created_at: at, last_attempt_at: at, ended_at: at },
      },
    ])
    return id
  }
  const old = await publish(null, owner?.account, 600_000)
  const seen = await publish('c1', owner?.account, 90_000)
  const news = [await publish(null, owner?.account, 60_000), await publish('c1', owner?.account, 50_000)]
  const foreign = await publish('c2', stranger?.account, 55_000)
  const [there, here] = await Promise.all(
    [ground.merged, ground.alone].map((fixture) =>
      fixture.signInWithRoles([owner?.account as string], ['account-admin']),
    ),
  )
  const channel = { channel_name: `private-account-${owner?.account}` }
  const resume = async (call: TestCall | undefined, body: object) => {
    const answer = await call?.('POST', '/api/v3/realtime/realtime/resume', { ...channel, ...body })
    expect(answer?.status, JSON.stringify(answer?.body)).toBe(200)
    return answer?.body.data as { missed: boolean; messages: { id: string }[] }
  }
  for (const body of [
    { since: ago(70_000) },
    { since: ago(3_600_000), after: seen },
    { since: ago(3_600_000), after: foreign },
  ]) {
    const found = await resume(there?.call, body)
    expect(found).toEqual(await resume(here?.call, body))
    expect(JSON.stringify(found)).not.toContain(foreign)
  }
  // What came before the last message was seen, wherever it was published.
  const { missed, messages } = await resume(there?.call, { since: ago(3_600_000), after: seen })
  expect([missed, messages.map(({ id }) => id)]).toEqual([false, [seen, ...news].toSorted()])
  expect(await resume(there?.call, { since: ago(3_600_000) })).toEqual({ missed: true, messages: [] })
  expect((await resume(there?.call, { since: ago(3_600_000), after: old })).missed).toBe(false)
  ground.proxy('c2').set('refusing')
  try {
    expect((await resume(there?.call, { since: ago(70_000) })).messages).toHaveLength(2)
  } finally {
    ground.proxy('c2').set('open')
  }
})

test('subscribers are counted over all databases', async () => {
  const type = (
    await ground.at(null).pool.query(`select document_id as id from event where internal = 'contract.create'`)
  ).rows[0]
  const count = async (fixture: typeof ground.merged) => {
    const { body } = await fixture.app.admin('GET', '/api/v3/webhook/catalogue/subscribers')
    return body.data
  }
  for (const { place, webhook, account } of owners) {
    const link = { document_id: randomUUID(), webhook, event: type.id, account }
    await ground.add(place, 'webhook_event', [{ ...link, created_at: instant(0), updated_at: instant(0) }])
  }
  expect(await count(ground.merged)).toEqual(await count(ground.alone))
  const found = (await count(ground.merged)).find((one: Json) => one.internal === 'contract.create')
  expect(found.subscribers).toBe(3)
})

test('a cell that is away is named, and no page is short', async () => {
  const { call } = await ground.merged.signInWithRoles(accountsOf(0, 1), ['account-admin'])
  ground.proxy('c2').set('refusing')
  try {
    for (const path of [
      WEBHOOKS,
      LEDGER,
      EVENTS,
      '/api/v3/webhook/replay-job',
      '/api/v3/audit/log',
      '/api/v3/realtime/message',
    ]) {
      const problem = expectProblem(await admin('GET', path), 503, 'dependency_unavailable')
      expect([path, problem.detail]).toEqual([path, expect.stringContaining('The cell c2 does not answer')])
    }
    // Whose accounts are elsewhere is served.
    const listed = await call('GET', `${WEBHOOKS}?sort=created_at`)
    expect(listed.status).toBe(200)
    expect(listed.body.data.map((row: Json) => row.account).toSorted()).toEqual(accountsOf(0, 1).toSorted())
    const one = await admin('GET', `${WEBHOOKS}?filters=account|eq|${accountsOf(1)[0]}`)
    expect(one.body.data).toHaveLength(1)
  } finally {
    ground.proxy('c2').set('open')
  }
  expect((await admin('GET', WEBHOOKS)).status).toBe(200)
})

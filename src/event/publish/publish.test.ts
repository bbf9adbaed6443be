import { describe, expect, test } from 'vitest'
import {
  expectProblem,
  NO_ONE,
  readEnvelope,
  startContractFixture,
  UUID_V7,
} from '../../../test/contract/contract-fixture.ts'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { EventTypeRecord } from '../catalogue/catalogue.store.ts'
import { findPublicationErrors, type Publication } from './publication-rules.ts'

const PUBLISH = '/api/v3/webhook/publish'
const EVENTS = '/api/v3/webhook/event-occurrence'

const fixture = await openForFile(startContractFixture())
const account: string = (await fixture.createAccount()).document_id
for (const [internal, account_scope] of [
  ['ticket.open', 'account'],
  ['ticket.purge', 'account'],
  ['tariff.change', 'none'],
  ['ticket.asleep', 'account'],
]) {
  const made = await fixture.app.admin('POST', '/api/v3/webhook/event', { internal, account_scope })
  expect(made.status).toBe(201)
  if (internal === 'ticket.asleep')
    await fixture.app.admin('PATCH', `/api/v3/webhook/event/${made.body.data.document_id}/active`, {
      is_actived: false,
    })
}

const publish = (body: unknown, call = fixture.app.admin) => call('POST', PUBLISH, body)
const readEvent = async (id: string) => (await fixture.app.admin('GET', `${EVENTS}/${id}`)).body.data
const countEvents = async () => {
  const { rows } = await fixture.app.database.pool.query('select count(*)::int as n from event_occurrence')
  return rows[0].n
}
/** Publishes and returns the ids, in order. */
async function accept(body: unknown, call = fixture.app.admin): Promise<string[]> {
  const answer = await publish(body, call)
  expect(answer.status, JSON.stringify(answer.body)).toBe(202)
  return answer.body.data.events.map((event: { event_id: string }) => event.event_id)
}

describe('the rules of a publication', () => {
  const type = (internal: string, change: Partial<EventTypeRecord> = {}) =>
    ({ internal, accountScope: 'account', source: 'external', isActived: true, ...change }) as EventTypeRecord
  const eventTypes = new Map(
    [
      type('a.b'),
      type('a.purge'),
      type('a.none', { accountScope: 'none' }),
      type('a.off', { isActived: false }),
      type('a.own', { source: 'route' }),
      type('a.made', { source: 'synthetic' }),
    ].map((item) => [item.internal, item]),
  )
  const publication = (change: Partial<Publication>): Publication => ({
    event: 'a.b',
    account: null,
    id: '1',
    url: null,
    idempotencyKey: null,
    ...change,
  })
  const judge = (...publications: Publication[]) =>
    findPublicationErrors(
      publications,
      { eventTypes, accounts: new Set(['known']), scope: 'all' },
      (index, member) => `${index}.${member}`,
    )

  test.each([
    ['an account-scoped type without an account', {}, []],
    ['an account-scoped type with an existing account', { account: 'known' }, []],
    ['an account-scoped type with an unknown account', { account: 'stray' }, ['unknown_account']],
    ['a purge with an account that is gone', { event: 'a.purge', account: 'stray' }, []],
    ['a type without owner and without account', { event: 'a.none' }, []],
    ['a type without owner with an account', { event: 'a.none', account: 'known' }, ['account_not_taken']],
    ['an inactive type', { event: 'a.off' }, ['inactive_event']],
    ['an event of a route', { event: 'a.own' }, ['own_event']],
    ['a synthetic event', { event: 'a.made' }, ['own_event']],
    ['an unknown type', { event: 'x.y', account: 'stray' }, ['unknown_event']],
    ['a URL of the resource', { url: 'https://tickets.example.com/7' }, []],
    [
      'an unknown type with a URL that is no https',
      { event: 'x.y', url: 'http://tickets.example.com/7' },
      ['unknown_event', 'url_not_https'],
    ],
    [
      'an inactive type with an unknown account',
      { event: 'a.off', account: 'stray' },
      ['inactive_event', 'unknown_account'],
    ],
  ])('%s', (_name, change, codes) => {
    expect(judge(publication(change)).map(({ code }) => code)).toEqual(codes)
  })

  test('a key twice in a batch has to be for the same content', () => {
    const keyed = (change: Partial<Publication>) => publication({ idempotencyKey: 'k', ...change })
    expect(judge(keyed({}), keyed({}), publication({ idempotencyKey: 'l', id: '2' }))).toEqual([])
    for (const other of [{ id: '2' }, { account: 'known' }, { event: 'a.purge' }, { url: 'https://a.example/1' }])
      expect(judge(keyed({}), keyed(other))).toMatchObject([
        { path: '1.idempotency_key', code: 'idempotency_key_reused' },
      ])
  })
})

describe('publishing', () => {
  test('one event answers 202 with its id and stores it whole; no event of its own, one audit entry', async () => {
    const before = await countEvents()
    const answer = await publish({ event: 'ticket.open', account, id: 'T-7' })
    expect(answer.status).toBe(202)
    const id = answer.body.data.events[0].event_id
    expect(answer.body).toEqual({
      data: { accepted: 1, events: [{ event_id: expect.stringMatching(UUID_V7) }] },
      message: 'Event accepted.',
    })
    expect(await countEvents()).toBe(before + 1)
    expect(await readEvent(id)).toEqual({
      document_id: id,
      event: 'ticket.open',
      account,
      resource: 'ticket',
      action: 'open',
      resource_id: 'T-7',
      url: null,
      is_purge: false,
      excluded_webhook: null,
      routed_at: null,
      created_at: new Date(fixture.app.clock.now()).toISOString(),
      updated_at: new Date(fixture.app.clock.now()).toISOString(),
    })
    const audit = await fixture.app.admin('GET', '/api/v3/audit/log?filters=action|eq|event.publish')
    expect(audit.body.data).toHaveLength(1)
  })

  test('a URL is stored and delivered as it was sent, with a key and without one', async () => {
    await fixture.app.settle()
    const url = 'https://Tickets.example.com/T-70?a=b&c=%20#d'
    const webhook = await fixture.createWebhook({ account }, ['ticket.open'])
    const body = { event: 'ticket.open', account, url }
    const ids = [
      ...(await accept({ ...body, id: 'T-70' })),
      ...(await accept({ ...body, id: 'T-71', idempotency_key: 'with-url' })),
      ...(await accept({
        events: [
          { ...body, id: 'T-72' },
          { ...body, id: 'T-73', url: null },
        ],
      })),
    ]
    expect(await Promise.all(ids.map(async (id) => (await readEvent(id)).url))).toEqual([url, url, url, null])
    await fixture.app.settle()
    const delivered = fixture.received(webhook).map((request) => readEnvelope(request).data)
    expect(delivered.map((data) => [data.id, data.url]).sort()).toEqual([
      ['T-70', url],
      ['T-71', url],
      ['T-72', url],
      ['T-73', null],
    ])
    const again = await accept({ ...body, id: 'T-71', idempotency_key: 'with-url' })
    expect(again).toEqual([ids[1]])
    const other = await publish({ ...body, id: 'T-71', url: `${url}x`, idempotency_key: 'with-url' })
    expect(expectProblem(other, 422, 'validation_failed').errors).toMatchObject([
      { path: 'idempotency_key', code: 'idempotency_key_reused' },
    ])
  })

  test('a URL that breaks a rule is named with every other broken rule, and nothing is recorded', async () => {
    const before = await countEvents()
    const answer = await publish({
      events: [
        { event: 'ticket.open', account, id: 'T-80', url: 'https://tickets.example.com/T-80' },
        { event: 'ticket.open', account: NO_ONE, id: 'T-81', url: 'https://me:word@tickets.example.com/' },
        { event: 'ticket.open', account, id: 'T-82', url: '/T-82' },
      ],
    })
    expect(expectProblem(answer, 422, 'validation_failed').errors).toMatchObject([
      { path: 'events.1.account', code: 'unknown_account' },
      { path: 'events.1.url', code: 'url_has_user_info' },
      { path: 'events.2.url', code: 'url_invalid' },
    ])
    expect(await countEvents()).toBe(before)
  })

  test('reaches the webhooks of the account and the global ones; without an account only the global ones', async () => {
    await fixture.app.settle()
    const own = await fixture.createWebhook({ account }, ['ticket.open'])
    const other = await fixture.createWebhook({ account: (await fixture.createAccount()).document_id }, ['ticket.open'])
    const global = await fixture.createWebhook({ is_global: true }, ['ticket.open', 'ticket.purge', 'tariff.change'])
    const [owned, ownerless] = await accept({
      events: [
        { event: 'ticket.open', account, id: 'T-8' },
        { event: 'ticket.open', id: 'T-9' },
      ],
    })
    await fixture.app.settle()
    const ids = (webhook: typeof own) => fixture.received(webhook).map((request) => readEnvelope(request).id)
    expect(ids(own)).toEqual([owned])
    expect(ids(other)).toEqual([])
    expect(ids(global).sort()).toEqual([owned, ownerless].sort())
    expect(readEnvelope(fixture.received(own)[0]).data).toEqual({
      account,
      resource: 'ticket',
      action: 'open',
      id: 'T-8',
      url: null,
    })
  })

  test('a purge is stored without an account, whatever was sent', async () => {
    const [id] = await accept({ event: 'ticket.purge', account: NO_ONE, id: 'T-1' })
    expect(await readEvent(String(id))).toMatchObject({ account: null, is_purge: true })
  })

  test('an event type without owner takes null as its account, and no other', async () => {
    const [id] = await accept({ event: 'tariff.change', account: null, id: '1' })
    expect(await readEvent(String(id))).toMatchObject({ account: null, is_purge: false })
    const refused = expectProblem(await publish({ event: 'tariff.change', account, id: '1' }), 422, 'validation_failed')
    expect(refused.errors).toMatchObject([{ path: 'account', code: 'account_not_taken' }])
  })

  test('a batch with broken entries records nothing, and each of them is named', async () => {
    const before = await countEvents()
    const answer = await publish({
      events: [
        { event: 'ticket.open', account, id: '1' },
        { event: 'webhook.auto-disable', id: '2' },
        { event: 'ticket.open', account: NO_ONE, id: '3' },
        { event: 'ticket.unheard-of', id: '4' },
        { event: 'ticket.asleep', id: '5' },
        { event: 'contract.create', account, id: '6' },
      ],
    })
    const problem = expectProblem(answer, 422, 'validation_failed')
    expect(problem.errors.map(({ path, code }: { path: string; code: string }) => `${path} ${code}`)).toEqual([
      'events.1.event own_event',
      'events.2.account unknown_account',
      'events.3.event unknown_event',
      'events.4.event inactive_event',
      'events.5.event own_event',
    ])
    expect(await countEvents()).toBe(before)
  })

  test('1,000 events are taken in the order of the request, 1,001 are not', async () => {
    const batch = (count: number) => ({
      events: Array.from({ length: count }, (_, index) => ({ event: 'tariff.change', id: `n${index}` })),
    })
    const ids = await accept(batch(1_000))
    expect(new Set(ids).size).toBe(1_000)
    expect(await readEvent(String(ids[0]))).toMatchObject({ resource_id: 'n0' })
    expect(await readEvent(String(ids[999]))).toMatchObject({ resource_id: 'n999' })
    const refused = expectProblem(await publish(batch(1_001)), 422, 'validation_failed')
    expect(refused.errors).toMatchObject([{ path: 'events' }])
  })

  test('of 1,000 broken events the first 50 are named, and how many there are', async () => {
    const events = Array.from({ length: 1_000 }, (_, index) => ({ event: 'ticket.shut', id: `n${index}` }))
    const { errors, detail } = expectProblem(await publish({ events }), 422, 'validation_failed')
    expect(errors.map(({ path }: { path: string }) => path)).toEqual(
      Array.from({ length: 50 }, (_, index) => `events.${index}.event`),
    )
    expect(detail).toContain('1000 rules are broken; errors lists the first 50')
  })

  test('a batch of 1 MiB is read, one byte more is a 413 that names the limit', async () => {
    const fill = (bytes: number) => `{"events":[{"event":"tariff.change","id":"1"${' '.repeat(bytes - 47)}}]}`
    expect(fill(1_048_576)).toHaveLength(1_048_576)
    expect((await publish(fill(1_048_576))).status).toBe(202)
    expect(expectProblem(await publish(fill(1_048_577)), 413, 'body_too_large').detail).toContain('at most 1 MiB')
  })

  test.each([
    ['nothing', {}, ['event', 'id']],
    ['an event without an id', { event: 'ticket.open' }, ['id']],
    ['both forms', { event: 'ticket.open', id: '1', events: [{ event: 'ticket.open', id: '1' }] }, ['event', 'id']],
    ['an empty batch', { events: [] }, ['events']],
    ['an empty id', { event: 'ticket.open', id: '' }, ['id']],
    ['an id of 256 characters', { event: 'ticket.open', id: 'x'.repeat(256) }, ['id']],
    ['an empty key', { event: 'ticket.open', id: '1', idempotency_key: '' }, ['idempotency_key']],
    [
      'a key of 256 characters',
      { event: 'ticket.open', id: '1', idempotency_key: 'x'.repeat(256) },
      ['idempotency_key'],
    ],
    [
      'an account that is no UUID',
      { events: [{ event: 'ticket.open', id: '1', account: 'acme' }] },
      ['events.0.account'],
    ],
    ['an unknown member', { events: [{ event: 'ticket.open', id: '1', data: {} }] }, ['events.0.data']],
    ['an id that is a number', { event: 'ticket.open', id: 7 }, ['id']],
  ])('a body with %s is a 422 on it', async (_name, body, paths) => {
    const problem = expectProblem(await publish(body), 422, 'validation_failed')
    expect(problem.errors.map(({ path }: { path: string }) => path).sort()).toEqual(paths)
  })

  test('ids and keys of 255 characters are taken', async () => {
    const long = 'é'.repeat(255)
    const [id] = await accept({ event: 'ticket.open', id: long, idempotency_key: long })
    expect(await readEvent(String(id))).toMatchObject({ resource_id: long })
  })

  test('needs event:publish', async () => {
    const body = { event: 'ticket.open', id: '1' }
    expectProblem(await publish(body, fixture.app.anonymous), 401, 'unauthenticated')
    const member = await fixture.app.signInMember([account as never])
    const refused = expectProblem(await publish(body, member.call), 403, 'permission_denied')
    expect(refused.detail).toContain('event:publish')
    const key = await fixture.app.admin('POST', '/api/v3/identity/api-key', {
      name: 'p',
      permissions: ['event:publish'],
    })
    await accept(body, fixture.app.callAs(key.body.data.key))
  })

  test('is refused with a 409 while the event queue is off, after the rules of the body', async () => {
    await using off = await createTestApp({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
    await off.admin('POST', '/api/v3/webhook/event', { internal: 'ticket.open' })
    const problem = expectProblem(await off.admin('POST', PUBLISH, { event: 'ticket.open', id: '1' }), 409, 'conflict')
    expect(problem.detail).toContain('ENABLE_API_EVENT_QUEUE')
    expectProblem(await off.admin('POST', PUBLISH, { event: 'ticket.shut', id: '1' }), 422, 'validation_failed')
  })
})

describe('the idempotency key of a publisher', () => {
  const keyed = (key: string, id = '1') => ({ event: 'tariff.change', id, idempotency_key: key })

  test('gives the earlier event again and records nothing, alone, in a batch and within one batch', async () => {
    const [first] = await accept(keyed('again'))
    const before = await countEvents()
    expect(await accept(keyed('again'))).toEqual([first])
    const mixed = await accept({ events: [keyed('again'), keyed('fresh', '2'), keyed('fresh', '2')] })
    expect(mixed[0]).toBe(first)
    expect(mixed[1]).toBe(mixed[2])
    expect(mixed[1]).not.toBe(first)
    expect(await countEvents()).toBe(before + 1)
  })

  test('with another content is a 422 that names the entry, and the batch around it is not recorded', async () => {
    await accept(keyed('mine', '1'))
    const before = await countEvents()
    const problem = expectProblem(
      await publish({ events: [keyed('not-mine', '1'), keyed('mine', '2')] }),
      422,
      'validation_failed',
    )
    expect(problem.errors).toMatchObject([{ path: 'events.1.idempotency_key', code: 'idempotency_key_reused' }])
    expect(await countEvents()).toBe(before)
    // The key of the refused batch was not used up by it.
    await accept(keyed('not-mine', 'something else'))
  })

  test('belongs to its caller: an API key of the same user has its own', async () => {
    const [mine] = await accept(keyed('whose'))
    const key = await fixture.app.admin('POST', '/api/v3/identity/api-key', {
      name: 'p',
      permissions: ['event:publish'],
    })
    const [other] = await accept(keyed('whose'), fixture.app.callAs(key.body.data.key))
    expect(other).not.toBe(mine)
  })

  test('of many requests at once records one event, in whatever order their batches hold the keys', async () => {
    const before = await countEvents()
    const keys = ['c1', 'c2', 'c3', 'c4']
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        accept({ events: (index % 2 ? keys : keys.toReversed()).map((key) => keyed(key)) }),
      ),
    )
    const inOneOrder = answers.map((ids, index) => (index % 2 ? ids : ids.toReversed()))
    for (const ids of inOneOrder) expect(ids).toEqual(inOneOrder[0])
    expect(await countEvents()).toBe(before + keys.length)
  })

  test('is remembered for 24 hours to the millisecond, and swept afterwards', async () => {
    const [first] = await accept(keyed('day'))
    fixture.app.clock.advance(24 * 3_600_000 - 1)
    expect(await accept(keyed('day'))).toEqual([first])
    fixture.app.clock.advance(1)
    const [second] = await accept(keyed('day', 'anything'))
    expect(second).not.toBe(first)
    fixture.app.clock.advance(24 * 3_600_000)
    const report = await fixture.app.app.maintenance.sweep()
    expect(report.publishKeys).toBeGreaterThan(0)
    const { rows } = await fixture.app.database.pool.query('select 1 from publish_key')
    expect(rows).toEqual([])
  })
})

describe('the list of events', () => {
  test.each([
    ['document_id', (event: Record<string, unknown>) => event.document_id],
    ['resource_id', () => 'L-1'],
    ['event', () => 'ticket.open'],
    ['account', () => account],
    ['resource', () => 'ticket'],
    ['created_at', (event: Record<string, unknown>) => event.created_at],
  ])('filters by %s', async (field, pick) => {
    fixture.app.clock.advance(1)
    const [id] = await accept({ event: 'ticket.open', account, id: 'L-1' })
    await accept({ event: 'tariff.change', id: 'L-2' })
    const value = pick(await readEvent(String(id)))
    const query = new URLSearchParams({ filters: `${field}|eq|${value}`, page_size: '200' })
    const { body } = await fixture.app.admin('GET', `${EVENTS}?${query}`)
    expect(body.data.map((row: { document_id: string }) => row.document_id)).toContain(id)
    for (const row of body.data) expect(row[field]).toBe(value)
  })

  test('refuses nobody, a member, and a field it does not have', async () => {
    const { call } = await fixture.app.signInMember()
    for (const path of [EVENTS, `${EVENTS}/${NO_ONE}`]) {
      expectProblem(await fixture.app.anonymous('GET', path), 401, 'unauthenticated')
      expect(expectProblem(await call('GET', path), 403, 'permission_denied').detail).toContain(
        'event-occurrence:find-',
      )
    }
    expectProblem(await fixture.app.admin('GET', `${EVENTS}/${NO_ONE}`), 404, 'not_found')
    expectProblem(await fixture.app.admin('GET', `${EVENTS}?filters=trace|eq|1`), 422, 'validation_failed')
  })
})

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Json } from '../contract/contract-fixture.ts'
import type { TestCall } from '../harness/app/app.ts'
import {
  type GroundPlace,
  type GroundRow,
  type MergedGround,
  openMergedGround,
} from '../harness/carriage/merged-ground.ts'

const START = Date.parse('2026-03-01T10:00:00.000Z')

/** Instants with many ties. */
const instant = (n: number) => new Date(START + n).toISOString()
const anyInstant = fc.integer({ min: 0, max: 5 }).map(instant)

/** Where collations differ: case, accents, signs, and what UTF-16 orders in another way than UTF-8. */
const TAILS = ['a', 'B', 'b', '_', '-', '%C3%A9', 'é', 'z', '～', '😀', 'aa', 'a-a']

let ground: MergedGround
/** Accounts with their databases. */
let owners: { account: string; place: GroundPlace }[]
/** The same callers at the merged service and at that of one database, by name. */
let callers: Record<string, { merged: TestCall; alone: TestCall }>
let eventTypes: string[]

/** Rows that are the same at each run: of `anyRow`, for a random owner. */
function sample<Row>(anyRow: fc.Arbitrary<Row>, count: number, seed: number): Row[] {
  return fc.sample(anyRow, { numRuns: count, seed })
}

const anyOwner = () => fc.constantFrom(...owners)

async function addWebhooks(): Promise<{ id: string; account: string | null; place: GroundPlace }[]> {
  const anyWebhook = fc.record({
    id: fc.uuid(),
    owner: fc.oneof({ weight: 6, arbitrary: anyOwner() }, { weight: 1, arbitrary: fc.constant(null) }),
    tail: fc.constantFrom(...TAILS),
    name: fc.constantFrom(null, 'alpha hook', 'beta hook'),
    failures: fc.integer({ min: 0, max: 3 }),
    active: fc.boolean(),
    at: anyInstant,
    changed: anyInstant,
  })
  const made = sample(anyWebhook, 70, 1)
  for (const { id, owner, tail, name, failures, active, at, changed } of made)
    await ground.add(owner?.place ?? null, 'webhook', [
      {
        ...{ document_id: id, url: `https://hooks.example.com/${tail}`, name, account: owner?.account ?? null },
        ...{
          is_global: owner === null,
          consecutive_failures: failures,
          is_actived: active,
          secret_encrypted: 'v1.k.s',
        },
        ...{ created_at: at, updated_at: changed },
      },
    ])
  return made.map(({ id, owner }) => ({ id, account: owner?.account ?? null, place: owner?.place ?? null }))
}

async function addRest(webhooks: Awaited<ReturnType<typeof addWebhooks>>): Promise<void> {
  const anyEnded = fc.record({
    ...{ id: fc.uuid(), event: fc.uuid(), webhook: fc.constantFrom(...webhooks), at: anyInstant, ended: anyInstant },
    status: fc.constantFrom('success', 'exhausted', 'failed', 'cancelled'),
    attempts: fc.integer({ min: 1, max: 5 }),
    type: fc.constantFrom('order.create', 'order.update'),
    owner: anyOwner(),
  })
  for (const { id, event, webhook, at, ended, status, attempts, type, owner } of sample(anyEnded, 90, 2)) {
    const account = webhook.account ?? owner.account
    await ground.add(webhook.place, 'webhook_dispatch_ended', [
      {
        ...{ document_id: id, webhook: webhook.id, event_id: event, event: type, account, status, attempts },
        ...{ created_at: at, updated_at: ended, ended_at: ended },
      },
    ])
  }
  for (const { id, event, webhook, at, ended, attempts, type } of sample(anyEnded, 30, 3))
    await ground.add(webhook.place, 'webhook_dispatch_open', [
      {
        ...{ document_id: id, webhook: webhook.id, event_id: event, event: type, account: webhook.account, attempts },
        ...{ status: 'retrying', next_attempt_at: ended, created_at: at, updated_at: ended },
      },
    ])
  const links = new Set<string>()
  const anyLink = fc.record({
    id: fc.uuid(),
    webhook: fc.constantFrom(...webhooks),
    at: anyInstant,
    type: fc.constantFrom(...eventTypes),
  })
  for (const { id, webhook, at, type } of sample(anyLink, 60, 4)) {
    if (links.has(`${webhook.id} ${type}`)) continue
    links.add(`${webhook.id} ${type}`)
    const row = { document_id: id, webhook: webhook.id, event: type, account: webhook.account }
    await ground.add(webhook.place, 'webhook_event', [{ ...row, created_at: at, updated_at: at }])
  }
  const anyOther = fc.record({ id: fc.uuid(), owner: anyOwner(), at: anyInstant, n: fc.integer({ min: 0, max: 9 }) })
  const each = async (
    count: number,
    seed: number,
    table: string,
    build: (one: { account: string; n: number }) => GroundRow,
  ) => {
    for (const { id, owner, at, n } of sample(anyOther, count, seed))
      await ground.add(owner.place, table, [
        { document_id: id, created_at: at, ...build({ account: owner.account, n }) },
      ])
  }
  await each(80, 5, 'event_occurrence', ({ account, n }) => ({
    ...{ event: n % 2 === 0 ? 'order.create' : 'contract.create', account, resource: 'order', action: 'create' },
    ...{ resource_id: `r${n}`, is_purge: false, routed_at: instant(9) },
  }))
  await each(30, 6, 'replay_job', ({ account, n }) => ({
    ...{
      status: n % 2 === 0 ? 'done' : 'cancelled',
      filters: [],
      confirm_duplicate: true,
      total: n,
      updated_at: instant(n),
    },
    ...{
      accounts: [account],
      ended_at: instant(9),
      processed: 0,
      replayed: 0,
      skipped: 0,
      skipped_reasons: {},
      failures: 0,
    },
  }))
  await each(40, 7, 'realtime_message_ended', ({ account, n }) => ({
    ...{
      account,
      event: 'order.create',
      attempts: n,
      fence: 1,
      results: 1,
      status: n % 2 === 0 ? 'published' : 'rejected',
    },
    ended_at: instant(9),
  }))
}

beforeAll(async () => {
  ground = await openMergedGround()
  owners = []
  for (const place of [null, null, 'c1', 'c2', 'c2'] as const)
    owners.push({ account: await ground.addAccount(place), place })
  const types = await ground.at(null).pool.query('select document_id from event order by internal limit 4')
  eventTypes = types.rows.map(({ document_id: id }) => id)
  for (const place of [null, 'c1', 'c2'] as const)
    await ground.at(place).pool.query(`update event set is_tenant_visible = true where internal = 'contract.create'`)
  await addRest(await addWebhooks())
  const { merged, alone } = ground
  const sign = async (numbers: readonly number[]) => {
    const accounts = numbers.map((n) => owners[n]?.account as string)
    const [there, here] = [merged, alone].map((fixture) => fixture.signInWithRoles(accounts, ['account-admin']))
    return { merged: (await there)?.call as TestCall, alone: (await here)?.call as TestCall }
  }
  callers = {
    operator: { merged: merged.app.admin, alone: alone.app.admin },
    'of every account': await sign([0, 1, 2, 3, 4]),
    'of two cells': await sign([2, 3, 4]),
    'of home and a cell': await sign([1, 3]),
    'of one cell': await sign([3, 4]),
    'of one account': await sign([2]),
  }
}, 300_000)
afterAll(() => ground?.[Symbol.asyncDispose]())

interface Walk {
  pages: Json[][]
  cursors: (string | null)[]
  total: unknown
}

/** Pages of a list that are compared at most. */
const MOST_PAGES = 12

/** The pages of a list. */
async function walk(call: TestCall, path: string, query: URLSearchParams): Promise<Walk> {
  const found: Walk = { pages: [], cursors: [], total: undefined }
  for (let cursor: string | null | undefined; cursor !== null && found.pages.length < MOST_PAGES; ) {
    const asked = new URLSearchParams(query)
    if (cursor !== undefined) asked.set('cursor', cursor)
    const { status, body } = await call('GET', `${path}?${asked}`)
    expect(status, JSON.stringify(body)).toBe(200)
    found.pages.push(body.data)
    cursor = body.pagination.next_cursor as string | null
    found.cursors.push(cursor)
    found.total ??= [body.pagination.total, body.pagination.is_total_exact]
  }
  return found
}

/** `always`: what both services have besides is left out. */
const LISTS: Record<string, { path: string; sorts: string[]; filters: string[]; always?: string }> = {
  webhooks: {
    path: '/api/v3/webhook/webhook',
    sorts: ['created_at', 'updated_at', 'consecutive_failures', 'url'],
    filters: [
      ...[
        'is_actived|eq|true',
        'consecutive_failures|in|0,2',
        'name|null|true',
        'name|ne|beta hook',
        'is_global|eq|false',
      ],
      ...['url|gt|https://hooks.example.com/b', 'url|between|https://hooks.example.com/a,https://hooks.example.com/z'],
      ...['url|like|hooks.example.com/a', 'url|in|https://hooks.example.com/é,https://hooks.example.com/😀'],
    ],
  },
  deliveries: {
    path: '/api/v3/webhook/dispatch',
    sorts: ['created_at', 'updated_at'],
    filters: [
      ...['status|ne|success', 'status|in|success,retrying', 'status|eq|exhausted', 'event|eq|order.create'],
      ...['attempts|gt|2', 'is_replay|eq|false', `created_at|gte|${instant(2)}`, 'resource_id|eq|r1'],
    ],
  },
  subscriptions: { path: '/api/v3/webhook/webhook-event', sorts: ['created_at', 'updated_at'], filters: [] },
  events: {
    path: '/api/v3/webhook/event-occurrence',
    always: 'resource|eq|order',
    sorts: ['created_at'],
    filters: ['event|eq|contract.create', 'resource_id|in|r1,r2,r3', `created_at|lt|${instant(3)}`],
  },
  replays: { path: '/api/v3/webhook/replay-job', sorts: ['created_at', 'updated_at'], filters: ['status|eq|done'] },
  messages: { path: '/api/v3/realtime/message', sorts: ['created_at'], filters: ['status|eq|rejected'] },
}

describe.each(Object.entries(LISTS))('the merged list of %s', (name, { path, sorts, filters, always }) => {
  const isOfOperators = name === 'messages'
  const anyQuery = fc.record({
    caller: isOfOperators
      ? fc.constant('operator')
      : fc.constantFrom(
          ...['operator', 'of every account', 'of two cells', 'of home and a cell', 'of one cell', 'of one account'],
        ),
    sort: fc.tuple(fc.constantFrom('', '-'), fc.constantFrom(...sorts)).map((parts) => parts.join('')),
    size: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(50, 200)),
    chosen: fc.subarray(filters, { maxLength: Math.min(2, filters.length) }),
    count: fc.boolean(),
  })

  test('is that of one database with the same rows, page by page, with its cursors and its total', async () => {
    let rows = 0
    await fc.assert(
      fc.asyncProperty(anyQuery, async ({ caller, sort, size, chosen, count }) => {
        const query = new URLSearchParams({ sort, page_size: String(size), count: String(count) })
        for (const filter of always ? [always, ...chosen] : chosen) query.append('filters', filter)
        const { merged, alone } = callers[caller] as (typeof callers)[string]
        const expected = await walk(alone, path, query)
        expect(await walk(merged, path, query)).toEqual(expected)
        rows += expected.pages.flat().length
      }),
      { numRuns: 12 },
    )
    expect(rows).toBeGreaterThan(100)
  })
})

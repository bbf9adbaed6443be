import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AccountId } from '../../src/base/id.ts'
import { beginMove } from '../../src/carriage/move/move.store.ts'
import { type MoverDeps, runMove } from '../../src/carriage/move/mover.ts'
import type { Json } from '../contract/contract-fixture.ts'
import type { TestCall } from '../harness/app/app.ts'
import { type GroundPlace, type MergedGround, openMergedGround } from '../harness/carriage/merged-ground.ts'
import { fillAccount } from '../harness/carriage/moved-account.ts'

/** Lists with what stays the same while an account moves; their totals too. */
const LISTS: Record<string, { path: string; sort: string; filter?: string; isCounted: boolean }> = {
  webhooks: { path: '/api/v3/webhook/webhook', sort: '-updated_at', isCounted: true },
  deliveries: { path: '/api/v3/webhook/dispatch', sort: '-updated_at', isCounted: true },
  subscriptions: { path: '/api/v3/webhook/webhook-event', sort: 'created_at', isCounted: true },
  replays: { path: '/api/v3/webhook/replay-job', sort: '-updated_at', isCounted: true },
  events: {
    path: '/api/v3/webhook/event-occurrence',
    ...{ sort: 'created_at', filter: 'event|eq|order.create', isCounted: false },
  },
  messages: { path: '/api/v3/realtime/message', sort: 'created_at', isCounted: false },
}

let ground: MergedGround
let account: AccountId
/** Another account, in a cell that takes no part in the first moves. */
let other: AccountId
let callers: Record<string, TestCall>

beforeAll(async () => {
  ground = await openMergedGround()
  account = (await ground.addAccount(null)) as AccountId
  other = (await ground.addAccount('c2')) as AccountId
  for (const place of [null, 'c1', 'c2'] as const)
    await ground.at(place).pool.query(
      `insert into event (document_id, internal, source, account_scope, is_tenant_visible, created_at, updated_at)
       values ('0199aaaa-0000-7000-8000-00000000000e', 'order.create', 'external', 'account', true, now(), now())`,
    )
  await fillAccount(ground.at(null), account, 9)
  await fillAccount(ground.at('c2'), other, 5)
  for (const place of [null, 'c1', 'c2'] as const) await ground.at(place).pool.query('analyze')
  const member = await ground.merged.signInWithRoles([account, other], ['account-admin'])
  callers = { operator: ground.merged.app.admin, member: member.call }
  // What signing in recorded waits for workers, which are not there: a move would wait for it.
  for (const table of ['event_queue', 'event_outbox']) await ground.at(null).pool.query(`delete from ${table}`)
}, 300_000)
afterAll(() => ground?.[Symbol.asyncDispose]())

const ask = async (call: TestCall, path: string, query: URLSearchParams): Promise<Json> => {
  const { status, body } = await call('GET', `${path}?${query}`)
  expect(status, JSON.stringify(body)).toBe(200)
  return body
}

/** The ids of a list, page by page, and its total. A member gets it on one page. */
async function readIds(caller: string, name: string) {
  const { path, sort, filter, isCounted } = LISTS[name] as (typeof LISTS)[string]
  const ids: string[] = []
  let total: number | undefined
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({
      sort,
      page_size: caller === 'member' ? '200' : '15',
      ...(isCounted && { count: 'true' }),
    })
    if (filter) query.append('filters', filter)
    if (cursor) query.set('cursor', cursor)
    const body = await ask(callers[caller] as TestCall, path, query)
    ids.push(...body.data.map(({ document_id: id }: { document_id: string }) => id))
    total ??= body.pagination.total
    cursor = body.pagination.next_cursor
  }
  return { ids, total }
}

const CALLERS = ['operator', 'member'] as const

/** Every list, of each caller by name. */
async function readAll(names: readonly string[] = CALLERS) {
  const found: Record<string, Awaited<ReturnType<typeof readIds>>> = {}
  for (const caller of names)
    for (const name of Object.keys(LISTS))
      if (name !== 'messages' || caller === 'operator') found[`${name} of ${caller}`] = await readIds(caller, name)
  return found
}

async function move(target: GroundPlace, change: Partial<MoverDeps>): Promise<void> {
  const begun = await beginMove(ground.at(null).db, { account, target, drainSeconds: 600 })
  expect(begun).toBeDefined()
  const deps: MoverDeps = {
    ...{ open: async (place) => ground.at(place as GroundPlace).db, runner: 'test', pageRows: 4 },
    sleep: () => new Promise(setImmediate),
    ...change,
  }
  expect(await runMove(deps, account)).toMatchObject({ kind: 'moved' })
}

test('at every step of a move each row is listed once, in its order, and counted once', async () => {
  const before = await readAll()
  for (const { ids, total } of Object.values(before)) {
    expect(ids.length).toBeGreaterThan(0)
    expect(new Set(ids).size).toBe(ids.length)
    if (total !== undefined) expect(total).toBe(ids.length)
  }
  let looks = 0
  for (const target of ['c1', 'c2', null] as const)
    await move(target, {
      beforeEffect: async (effect, step) => {
        // One caller after the other.
        const found = await readAll([CALLERS[looks % 2] ?? ''])
        expect({ step, effect: effect.kind, found }).toEqual({
          step,
          effect: effect.kind,
          found: Object.fromEntries(Object.entries(before).filter(([name]) => name in found)),
        })
        looks += 1
        expect(looks).toBeLessThan(200)
      },
    })
  expect(looks).toBeGreaterThan(40)
  expect(await readAll()).toEqual(before)
})

test('lists that are read while pages are copied and cleared miss nothing and have nothing twice', async () => {
  const before = await readAll()
  const turns = [
    ...[['operator', 'deliveries'] as const, ['member', 'webhooks'] as const],
    ...[['operator', 'events'] as const, ['member', 'deliveries'] as const],
  ]
  let reads = 0
  let reading: Promise<unknown> = Promise.resolve()
  // Each effect is made while a list is read.
  const beforeEffect = async () => {
    await reading
    const [caller, name] = turns[reads % turns.length] ?? ['operator', 'events']
    reads += 1
    reading = readIds(caller, name).then((found) => expect(found).toEqual(before[`${name} of ${caller}`]))
    reading.catch(() => {})
  }
  for (const target of ['c1', null] as const) await move(target, { beforeEffect })
  await reading
  expect(reads).toBeGreaterThan(20)
})

test('a cursor from before a move goes on after it', async () => {
  const query = new URLSearchParams({ sort: '-updated_at', page_size: '10' })
  const first = await ask(callers.operator as TestCall, '/api/v3/webhook/dispatch', query)
  const whole = await readIds('operator', 'deliveries')
  await move('c1', {})
  query.set('cursor', first.pagination.next_cursor)
  const second = await ask(callers.operator as TestCall, '/api/v3/webhook/dispatch', query)
  const idsOf = (body: Json) => body.data.map(({ document_id: id }: { document_id: string }) => id)
  expect([...idsOf(first), ...idsOf(second)]).toEqual(whole.ids.slice(0, 20))
})

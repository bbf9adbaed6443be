import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { countWaiting } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { systemClock } from '../../base/clock.ts'
import { buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { buildEvents } from '../../event/occurrence/event.ts'
import type { Publications } from '../../event/recording/publication-batch.store.ts'
import { buildPublicationBatch } from '../../event/recording/publication-batch.ts'
import { isAccountRefused, readRefusedAccounts } from './account-fence.ts'

const A = '0199aaaa-0000-7000-8000-00000000000a'
const B = '0199aaaa-0000-7000-8000-00000000000b'
const C = '0199aaaa-0000-7000-8000-00000000000c'
const ids = buildIdMaker(systemClock, systemRandom)
const now = new Date('2026-11-21T10:00:00Z')

const database = await openForFile(createTestDatabase({ isOwn: true }))
await database.pool.query(
  `insert into account (document_id, name, created_at, updated_at)
     select unnest($1::uuid[]), 'Example', $2, $2`,
  [[A, B, C], now],
)
await database.pool.query(
  `insert into event (document_id, internal, source, account_scope, created_at, updated_at)
     select gen_random_uuid(), x.name, x.source, 'account', $1, $1
     from (values ('order.create', 'external'), ('contract.update', 'route'), ('webhook.update', 'route')) x (name, source)`,
  [now],
)
await database.pool.query('select open_fence(), open_fence()')

/** Makes this database home, or a cell, with the accounts in these states. */
async function setFence(cell: string | null, states: Record<string, string>): Promise<void> {
  await database.pool.query('delete from account_fence')
  await database.pool.query('delete from database_identity')
  await database.pool.query('insert into database_identity (home, cell) values (gen_random_uuid(), $1)', [cell])
  for (const [account, state] of Object.entries(states))
    await database.pool.query('insert into account_fence (account, version, state) values ($1, 1, $2)', [
      account,
      state,
    ])
}

const EVENT = `insert into event_occurrence (document_id, event, account, resource, action, created_at, origin, excluded_webhook)
  select gen_random_uuid(), $2, a, 'order', 'create', now(), $3, $4 from unnest($1::uuid[]) a`

/** The accounts that the fence refuses of a statement; none when it passes. */
async function refusedOf(text: string, values: unknown[]): Promise<readonly string[]> {
  const client = await database.pool.connect()
  try {
    await client.query('begin')
    await client.query(text, values)
    return []
  } catch (error) {
    if (!isAccountRefused(error)) throw error
    return readRefusedAccounts(error)
  } finally {
    await client.query('rollback')
    client.release()
  }
}

const record = (
  accounts: readonly string[],
  {
    type = 'order.create',
    origin = null,
    excluded = null,
  }: { type?: string; origin?: string | null; excluded?: string | null } = {},
) => refusedOf(EVENT, [accounts, type, origin, excluded])

describe('the fence of an account', () => {
  test('lets home begin all accounts but those that were moved, and a cell those alone', async () => {
    await setFence(null, { [A]: 'gone', [B]: 'open' })
    expect(await record([C, B, A])).toEqual([A])
    await setFence('c1', { [A]: 'open', [B]: 'gone' })
    expect(await record([C, B, A])).toEqual([B, C])
    expect(await record([A])).toEqual([])
  })

  test.each([
    ['open', [], [], [], []],
    ['held', [A], [], [], [A]],
    ['closed', [A], [A], [], [A]],
    ['gone', [A], [A], [], []],
  ])('in home, when it is %s, begins %j, ends %j, takes %j and tells %j', async (state, begun, ended, taken, told) => {
    await setFence(null, { [A]: state })
    expect(await record([A])).toEqual(begun)
    expect(await record([A], { type: 'webhook.update' })).toEqual(begun)
    expect(await record([A], { type: 'webhook.failing', excluded: B })).toEqual(ended)
    expect(await record([A], { origin: 'c1' })).toEqual(taken)
    expect(await record([A], { type: 'contract.update' })).toEqual(told)
  })

  test.each([
    ['open', [], [], [], []],
    ['held', [A], [], [], [A]],
    ['closed', [A], [A], [A], [A]],
    ['gone', [A], [A], [A], [A]],
  ])(
    'in a cell, when it is %s, begins %j, ends %j, takes %j and tells %j',
    async (state, begun, ended, taken, told) => {
      await setFence('c1', { [A]: state })
      expect(await record([A])).toEqual(begun)
      expect(await record([A], { type: 'webhook.failing', excluded: B })).toEqual(ended)
      expect(await record([A], { origin: 'home' })).toEqual(taken)
      expect(await record([A], { type: 'contract.update' })).toEqual(told)
    },
  )

  test('refuses webhooks, links, replays, pulls and bulk replays, and neither those of others nor global ones', async () => {
    await setFence(null, {})
    const webhook = '0199bbbb-0000-7000-8000-000000000001'
    const insertWebhook = `insert into webhook (document_id, url, account, is_global, mode, created_at, updated_at)
      values ($1, '', $2, $3, 'pull', now(), now())`
    await database.pool.query(insertWebhook, [webhook, A, false])
    const insertLink = `insert into webhook_event (document_id, webhook, event, created_at, updated_at)
      select gen_random_uuid(), $1, document_id, now(), now() from event where internal = $2`
    await database.pool.query(insertLink, [webhook, 'order.create'])
    const insertRow = `insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, status,
      next_attempt_at, attempt_trigger, created_at, updated_at)
      values ($1, $2, gen_random_uuid(), 'order.create', $3, 'pending', now(), $4, now(), now())`
    const row = '0199cccc-0000-7000-8000-000000000001'
    await database.pool.query(insertRow, [row, webhook, A, 'schedule'])
    const pull = `update webhook_dispatch_open set leased_until = now(), next_attempt_at = null, kept_until = now() where document_id = $1`
    const hurry = `update webhook_dispatch_open set attempt_trigger = 'replay' where document_id = $1`
    const fail = 'update webhook set consecutive_failures = 1 where document_id = $1'
    const move = 'update webhook set account = $2 where document_id = $1'
    const replays = `insert into replay_job (document_id, status, filters, confirm_duplicate, total, created_at, updated_at, accounts)
      values (gen_random_uuid(), 'running', '{}', false, 0, now(), now(), $1)`

    const listRefused = async () => ({
      webhook: await refusedOf(insertWebhook, ['0199bbbb-0000-7000-8000-000000000002', A, false]),
      global: await refusedOf(insertWebhook, ['0199bbbb-0000-7000-8000-000000000003', A, true]),
      ofAnother: await refusedOf(insertWebhook, ['0199bbbb-0000-7000-8000-000000000004', B, false]),
      link: await refusedOf(insertLink, [webhook, 'contract.update']),
      unlink: await refusedOf('delete from webhook_event where webhook = $1', [webhook]),
      failure: await refusedOf(fail, [webhook]),
      removal: await refusedOf('delete from webhook where document_id = $1', [webhook]),
      away: await refusedOf(move, [webhook, B]),
      pull: await refusedOf(pull, [row]),
      hurry: await refusedOf(hurry, [row]),
      replay: await refusedOf(insertRow, ['0199cccc-0000-7000-8000-000000000002', webhook, A, 'replay']),
      job: await refusedOf(replays, [[A]]),
      jobOfAll: await refusedOf(replays, [null]),
    })
    const none = { webhook: [], global: [], ofAnother: [], link: [], unlink: [], failure: [], removal: [], away: [] }
    const passed = { ...none, pull: [], hurry: [], replay: [], job: [], jobOfAll: [] }
    expect(await listRefused()).toEqual(passed)
    await setFence(null, { [A]: 'held' })
    const begun = { webhook: [A], pull: [A], hurry: [A], replay: [A], job: [A] }
    expect(await listRefused()).toEqual({ ...passed, ...begun })
    await setFence(null, { [A]: 'closed' })
    const closed = { ...passed, ...begun, link: [A], unlink: [A], failure: [A], removal: [A], away: [A] }
    expect(await listRefused()).toEqual(closed)
    // To another account: both ends are judged.
    await setFence(null, { [B]: 'gone' })
    expect(await listRefused()).toEqual({ ...passed, ofAnother: [B], away: [B] })
  })

  test('waits at the hold for a write that began before, and refuses one that begins after', async () => {
    await setFence(null, {})
    const [early, late, mover] = [
      await database.pool.connect(),
      await database.pool.connect(),
      await database.pool.connect(),
    ]
    try {
      await early.query('begin')
      await early.query(EVENT, [[A], 'order.create', null, null])
      await mover.query('begin')
      const locked = mover.query(
        `select pg_advisory_xact_lock(hashtextextended('signalbox account ' || $1::text, 0))`,
        [A],
      )
      let isLocked = false
      void locked.then(() => {
        isLocked = true
      })
      await waitFor('the hold waits', async () => (await countWaiting(database.db)) === 1)
      expect(isLocked).toBe(false)
      // One that comes while the hold waits comes after it, and is judged by what the hold writes.
      const judged = late.query(EVENT, [[A], 'order.create', null, null]).then(
        () => [],
        (error: unknown) => readRefusedAccounts(error),
      )
      await waitFor('the late write waits', async () => (await countWaiting(database.db)) === 2)
      await early.query('commit')
      await locked
      await mover.query(`insert into account_fence (account, version, state) values ($1, 1, 'held')`, [A])
      await mover.query('commit')
      expect(await judged).toEqual([A])
    } finally {
      for (const client of [early, late, mover]) client.release()
    }
    // Who is refused waits for no holder.
    const holder = await database.pool.connect()
    await holder.query('begin')
    await holder.query(`select pg_advisory_xact_lock(hashtextextended('signalbox account ' || $1::text, 0))`, [A])
    expect(await record([A, B])).toEqual([A])
    await holder.query('rollback')
    holder.release()
  })

  test('lets two statements take many accounts in any order, beside moves of each', async () => {
    await setFence(null, {})
    const accounts = [A, B, C]
    const move = async (account: string) => {
      const client = await database.pool.connect()
      await client.query('begin')
      await client.query(`select pg_advisory_xact_lock(hashtextextended('signalbox account ' || $1::text, 0))`, [
        account,
      ])
      await client.query('rollback')
      client.release()
    }
    const writes = Array.from({ length: 20 }, (_, n) => record(n % 2 ? accounts : [...accounts].reverse()))
    const all = await Promise.all([...writes, ...Array.from({ length: 20 }, (_, n) => move(accounts[n % 3]!))])
    expect(all.flat().filter((refused) => refused !== undefined)).toEqual([])
  })
})

test('of a batch of publications only those of the account that moves are refused, and the others cost one statement more', async () => {
  await setFence(null, { [A]: 'held' })
  const { db } = database
  const batch = buildPublicationBatch({
    logger: pino({ enabled: false }),
    ...{ db, workerDb: db, takeInline: async () => undefined, onRecorded: () => {} },
  })
  const publish = (accounts: readonly string[], resourceId: string): Publications => ({
    events: buildEvents(
      { ids, enableApiEventQueue: true },
      accounts.map((account) => ({
        ...{ type: 'order.create', accountScope: 'account', account: account as never, resource: 'order' },
        ...{ action: 'create', url: null, resourceId },
      })),
      now,
    ),
    pairs: accounts.map((account) => ({ event: 'order.create', account: account as never, isOfTenant: false })),
    auditEntries: [],
  })
  const given = [[B], [A], [B, A], [C], [A], [B, C]]
  const first = [batch.record(publish([B], 'first')), batch.record(publish([B], 'second'))]
  const results = await Promise.allSettled(given.map((accounts, n) => batch.record(publish(accounts, `moved-${n}`))))
  await Promise.all(first)
  expect(results.map(({ status }) => status)).toEqual(
    given.map((accounts) => (accounts.includes(A) ? 'rejected' : 'fulfilled')),
  )
  const { rows } = await database.pool.query(
    `select resource_id, count(*)::int from event_occurrence where resource_id like 'moved-%' group by 1 order by 1`,
  )
  expect(rows).toEqual([
    { resource_id: 'moved-0', count: 1 },
    { resource_id: 'moved-3', count: 1 },
    { resource_id: 'moved-5', count: 2 },
  ])
})

test('a service without cells has no trigger of the fence, and a closed fence leaves none', async () => {
  const listTriggers = async (of: TestDatabase) =>
    (await of.pool.query(`select tgrelid::regclass::text as t from pg_trigger where tgname like 'fence%' order by 1`))
      .rows
  await using fresh = await createTestDatabase()
  expect(await listTriggers(fresh)).toEqual([])
  expect(await listTriggers(database)).toHaveLength(7)
  await database.pool.query('select close_fence()')
  expect(await listTriggers(database)).toEqual([])
  await database.pool.query('select open_fence()')
})

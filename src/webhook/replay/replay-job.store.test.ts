import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { DispatchId, WebhookId } from '../../base/id.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { inTransaction, SHORT_LIMITS } from '../../postgres/statement/database.ts'
import {
  claimRunningJob,
  countOnTheirWay,
  deleteOldReplayJobs,
  findExistingDispatches,
  insertReplayJob,
  listNextItems,
  replayJobs,
} from './replay-job.store.ts'
import { createReplayJob } from './replay-job.ts'

async function openJobs() {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const { db } = database
  const ledger = buildLedger(db, clock)
  const add = (dispatches: readonly DispatchId[]) =>
    insertReplayJob(db, {
      ...{
        id: ledger.ids.next<'replay job'>(),
        filters: ['status|eq|failed'],
        confirmDuplicate: false,
        accounts: null,
      },
      ...{ dispatches, by: null, now: ledger.now() },
    })
  const dispatch = () => ledger.ids.next<'dispatch'>() as DispatchId
  return { db, clock, ledger, add, dispatch, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

test('a job without rows is done at once, one with rows runs, and both are kept as they are returned', async () => {
  await using t = await openJobs()
  const empty = await t.add([])
  expect(empty).toMatchObject({ status: 'done', total: 0, endedAt: t.ledger.now() })
  const full = await t.add([t.dispatch()])
  expect(full).toMatchObject({ status: 'running', total: 1, endedAt: null })
  expect([await replayJobs.find(t.db, empty.id), await replayJobs.find(t.db, full.id)]).toEqual([empty, full])
  expect(await replayJobs.listRunning(t.db, null)).toEqual([full.id])
})

test('a job that is moved has the time at which it ended, none while it goes on, and begins without failures', async () => {
  await using t = await openJobs()
  const [job, other] = [await t.add([t.dispatch()]), await t.add([t.dispatch()])]
  const failed = { status: 'failed', failures: 5, lastError: 'why', endedAt: t.ledger.now() } as const
  expect(await replayJobs.change(t.db, job.id, failed, t.ledger.now())).toEqual({ ...job, ...failed })
  t.clock.advance(1000)
  const now = t.ledger.now()
  const move = (from: 'failed' | 'running', to: 'running' | 'cancelled', endedAt: Date | null) =>
    replayJobs.move(t.db, job.id, { from: [from], to, endedAt, now })
  expect(await move('running', 'cancelled', now)).toBeUndefined()
  expect(await move('failed', 'running', null)).toEqual({ ...job, updatedAt: now })
  expect(await move('running', 'cancelled', now)).toEqual({ ...job, status: 'cancelled', endedAt: now, updatedAt: now })
  expect(await replayJobs.find(t.db, other.id)).toEqual(other)
})

test('a change writes what it names, of that job alone', async () => {
  await using t = await openJobs()
  const [job, other] = [await t.add([t.dispatch(), t.dispatch()]), await t.add([t.dispatch()])]
  t.clock.advance(1000)
  const now = t.ledger.now()
  const change = { processed: 2, replayed: 1, skipped: 1, skippedReasons: { gone: 1 } }
  expect(await replayJobs.change(t.db, job.id, change, now)).toEqual({ ...job, ...change, updatedAt: now })
  expect(await replayJobs.change(t.db, job.id, { failures: 1 }, now)).toMatchObject({ ...change, failures: 1 })
  expect(await replayJobs.find(t.db, other.id)).toEqual(other)
})

test('a running job is moved on by one worker at a time, and one that ended by none', async () => {
  await using t = await openJobs()
  const [job, other] = [await t.add([t.dispatch()]), await t.add([t.dispatch()])]
  await inTransaction(t.db, async (tx) => {
    expect(await claimRunningJob(tx, job.id)).toEqual(job)
    expect(await claimRunningJob(t.db, job.id)).toBeUndefined()
    expect(await claimRunningJob(t.db, other.id)).toEqual(other)
  })
  const move = { from: ['running'], to: 'paused', endedAt: null, now: t.ledger.now() } as const
  await whileHeld(
    t.db,
    (tx) => claimRunningJob(tx, job.id),
    () => replayJobs.move(t.db, job.id, move),
  )
  expect(await claimRunningJob(t.db, job.id)).toBeUndefined()
})

test('the rows of a job follow those that were processed, in their order', async () => {
  await using t = await openJobs()
  const rows = [t.dispatch(), t.dispatch(), t.dispatch()].reverse()
  const job = await t.add(rows)
  await t.add([t.dispatch()])
  expect(await listNextItems(t.db, job, 2)).toEqual(rows.slice(0, 2))
  expect(await listNextItems(t.db, { ...job, processed: 1 }, 9)).toEqual(rows.slice(1))
  expect(await listNextItems(t.db, { ...job, processed: 3 }, 9)).toEqual([])
})

test('rows on their way are those of the job whose webhook lives and is active', async () => {
  await using t = await openJobs()
  const job = await t.add([t.dispatch()])
  const webhooks = [
    await t.ledger.addWebhook(),
    await t.ledger.addWebhook({ isActived: false }),
    await t.ledger.addWebhook({ isDeleted: true }),
  ]
  const own = []
  for (const webhook of webhooks) own.push(...(await t.ledger.addDispatches(webhook)))
  const [foreign] = await t.ledger.addDispatches(webhooks[0]!)
  await t.db.updateTable('webhook_dispatch_open').set({ replay_job: job.id }).where('document_id', 'in', own).execute()
  expect(await countOnTheirWay(t.db, { job: job.id })).toBe(1)
  expect(await findExistingDispatches(t.db, [foreign!, t.dispatch()])).toEqual(new Set([foreign]))
  expect(await findExistingDispatches(t.db, [])).toEqual(new Set())
})

test('rows of an account that is being moved, or has moved, are none that exist', async () => {
  await using t = await openJobs()
  const [mine, other] = [await t.ledger.addAccount(), await t.ledger.addAccount()]
  const [moved] = await t.ledger.addDispatches(await t.ledger.addWebhook({ account: mine }))
  const [stays] = await t.ledger.addDispatches(await t.ledger.addWebhook({ account: other }))
  const [orphan] = await t.ledger.addDispatches(t.ledger.ids.next<'webhook'>() as WebhookId)
  const find = () => findExistingDispatches(t.db, [moved!, stays!, orphan!])
  for (const state of ['open', 'held', 'closed', 'gone'] as const) {
    const rests = state === 'closed' || state === 'gone'
    await t.db
      .insertInto('account_fence')
      .values({ account: mine, version: 1, state })
      .onConflict((to) => to.column('account').doUpdateSet({ state }))
      .execute()
    expect(await find(), state).toEqual(new Set(rests ? [stays, orphan] : [moved, stays, orphan]))
  }
})

test('the rows of a job are selected within the limit of long reads, and written without it', async () => {
  await using t = await openJobs()
  await t.ledger.addDispatches(await t.ledger.addWebhook())
  const selection = { filters: [], fields: {}, scope: 'all', limit: 5, confirmDuplicate: false } as const
  const deps = { ids: t.ledger.ids, enableApiEventQueue: true, accountLimits: { take: async () => {} } }
  await inTransaction(t.db, async (tx) => {
    const job = await createReplayJob(deps, tx, { selection, filterTexts: [], by: null, now: t.ledger.now() })
    expect(job.total).toBe(1)
    const { rows } = await sql`select current_setting('statement_timeout') as limit`.execute(tx)
    expect(rows).toEqual([{ limit: `${SHORT_LIMITS.statementMs / 1_000}s` }])
  })
})

test('a job of a caller for some accounts is of these alone, and counts for each row of them', async () => {
  await using t = await openJobs()
  const account = await t.ledger.addAccount()
  for (const owner of [account, await t.ledger.addAccount()]) {
    const [id] = await t.ledger.addDispatches(await t.ledger.addWebhook({ account: owner }))
    await t.db.updateTable('webhook_dispatch_open').set({ account: owner }).where('document_id', '=', id!).execute()
  }
  const taken: unknown[] = []
  const take = async (_db: unknown, ...given: unknown[]) => void taken.push(given)
  const deps = { ids: t.ledger.ids, enableApiEventQueue: true, accountLimits: { take } }
  const create = (scope: PermissionScope) => {
    const selection = { filters: [], fields: {}, scope, limit: 5, confirmDuplicate: false }
    return createReplayJob(deps, t.db, { selection, filterTexts: [], by: null, now: t.ledger.now() })
  }
  expect(await create('all')).toMatchObject({ total: 2, accounts: null })
  expect(taken).toEqual([])
  expect(await create([account])).toMatchObject({ total: 1, accounts: [account] })
  expect(taken).toEqual([['replays_per_minute', [account]]])
  await expect(
    createReplayJob({ ...deps, enableApiEventQueue: false }, t.db, {
      selection: { filters: [], fields: {}, scope: 'all', limit: 5, confirmDuplicate: false },
      ...{ filterTexts: [], by: null, now: t.ledger.now() },
    }),
  ).rejects.toMatchObject({ code: 'conflict' })
})

test('jobs that ended before an instant are deleted, so many at once, and none that another transaction has locked', async () => {
  await using t = await openJobs()
  const [first, second] = [await t.add([]), await t.add([])]
  t.clock.advance(1000)
  const [later, running] = [await t.add([]), await t.add([t.dispatch()])]
  expect(await deleteOldReplayJobs(t.db, new Date(t.clock.now() - 1000), 10)).toBe(0)
  await inTransaction(t.db, async (tx) => {
    await tx.selectFrom('replay_job').select('document_id').where('document_id', '=', first.id).forUpdate().execute()
    expect(await deleteOldReplayJobs(t.db, t.ledger.now(), 1)).toBe(1)
  })
  expect(await replayJobs.find(t.db, second.id)).toBeUndefined()
  expect(await deleteOldReplayJobs(t.db, t.ledger.now(), 10)).toBe(1)
  expect([await replayJobs.find(t.db, later.id), await replayJobs.find(t.db, running.id)]).toEqual([later, running])
})

import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { buildCommitGate } from '../../../test/harness/database/commit-gate.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { keepRows, openRestorable } from '../../../test/harness/database/restorable-database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { DispatchId, WebhookId } from '../../base/id.ts'
import type { ClaimRequest } from '../../delivery/policy.ts'
import { routeBatch } from '../../delivery/routing/routing.store.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { insertDispatch } from '../ledger/dispatch.store.ts'
import { scheduleReplays } from '../ledger/replay.store.ts'
import { claimDispatches, findNextDueAt, releaseClaims } from './claim.store.ts'
import type { ClaimedDispatch } from './claimed-work.ts'
import { buildWebhookRouting } from './routing.store.ts'
import { settleAttempts } from './settle.ts'

const database = await openForFile(createTestDatabase({ isOwn: true }))
const { db } = database
const gate = await openForFile(
  buildCommitGate(database, ['webhook_dispatch_open', 'webhook_queue', 'webhook', 'webhook_event']),
)
// With the triggers of the gate, so that it serves every test.
const kept = await openForFile(
  keepRows(database.connectionString)
    .then(() => openRestorable(database.connectionString))
    .then((opened) => ({ ...opened, [Symbol.asyncDispose]: opened.close })),
)

async function emptyDatabase(): Promise<void> {
  const { rows } = await database.pool.query('select pid from pg_stat_activity where datname = current_database()')
  expect(await kept.restore(rows.map(({ pid }) => pid))).toBe(true)
}

async function openQueue() {
  const clock = buildManualClock()
  const ledger = buildLedger(db, clock)
  await ledger.addEventType('contract.create')
  const request = (change: Partial<ClaimRequest> = {}): ClaimRequest => ({
    workerId: 'worker-a',
    now: ledger.now(),
    fastSlots: 100,
    slowSlots: 0,
    slowGroups: [],
    lateGroups: [],
    inFlight: new Map(),
    perGroup: 100,
    hasPeers: true,
    ...change,
  })
  const claim = (on: Database) => claimDispatches(on, request())
  return {
    db,
    clock,
    ledger,
    gate,
    request,
    claim,
    [Symbol.asyncDispose]: emptyDatabase,
  }
}

type Queue = Awaited<ReturnType<typeof openQueue>>

const noRoom = { fastSlots: 0, slowSlots: 0 }

/**
 * Causes that make a row of a webhook due, one entry for each statement: `prepare` writes what it needs and returns what
 * runs at the same time as a claim.
 */
const WRITERS: [string, (t: Queue, webhook: WebhookId) => Promise<(on: Database) => Promise<unknown>>][] = [
  [
    'a routed event',
    async (t) => {
      await t.ledger.recordMany('contract.create')
      const part = buildWebhookRouting(t.request(noRoom))
      const input = { after: '00000000-0000-0000-0000-000000000000', limit: 10, now: t.ledger.now() }
      return (on) => routeBatch(on, input, [{ name: 'webhook', part }])
    },
  ],
  [
    'a result that is made again at once',
    async (t, webhook) => {
      const [ended] = await addClaimed(t, webhook)
      return (on) => settleAttempts(t.ledger.deps, on, [ended!])
    },
  ],
  [
    'a claim that is given back',
    async (t, webhook) => {
      const claims = await addClaimed(t, webhook)
      return (on) => releaseClaims(on, claims, t.ledger.now())
    },
  ],
  [
    'a replay of a row that ended',
    async (t, webhook) => {
      const ids = await t.ledger.addDispatches(webhook, { status: 'exhausted', attempts: 5 })
      return (on) => replay(t, on, ids)
    },
  ],
  [
    'a replay of a row that waits for later',
    async (t, webhook) => {
      const dueAt = new Date(t.clock.now() + 60_000)
      const ids = await t.ledger.addDispatches(webhook, { status: 'retrying', attempts: 1, dueAt })
      return (on) => replay(t, on, ids)
    },
  ],
  [
    'a test',
    async (t, webhook) => {
      const [event] = await t.ledger.recordMany('contract.create')
      await sql`delete from event_queue`.execute(t.db)
      const id = t.ledger.ids.next<'dispatch'>()
      const row = { id, webhook, eventId: event!.id, event: 'webhook.test', account: null }
      const rest = { workerId: 'worker-a', now: t.ledger.now() }
      return (on) => insertDispatch(on, { ...row, isTest: true, trigger: 'test' }, rest)
    },
  ],
]

function replay(t: Queue, on: Database, ids: DispatchId[]): Promise<void> {
  const input = { job: null, workerId: 'worker-a', now: t.ledger.now() }
  return inTransaction(on, async (tx) => {
    await scheduleReplays(tx, ids, input)
    // A statement that is sent ahead is not waited for.
    await sql`select`.execute(tx)
  })
}

async function addClaimed(t: Queue, webhook: WebhookId) {
  const [id] = await t.ledger.addDispatches(webhook, { attempts: 1, leaseUntil: t.ledger.now() })
  const now = t.ledger.now()
  const claim = { id: id!, fence: 1, attempt: 1, trigger: 'schedule', isTest: false, webhook } as const
  const rest = { event: 'contract.create', workerId: 'worker-lost', traceId: null, startedAt: now, endedAt: now }
  const answer = { responseExcerpt: null, responseHeaders: null, timings: null, durationMs: 1 }
  return [{ ...claim, ...rest, ...answer, result: { errorClass: 'interrupted' } as const }]
}

/** Claims until nothing is due, and returns all rows that any claim got. */
async function claimRest(t: Queue, before: readonly ClaimedDispatch[]): Promise<DispatchId[]> {
  const claimed = [...before]
  for (;;) {
    const more = await t.claim(t.db)
    if (more.length === 0) return claimed.map((claim) => claim.id).sort()
    claimed.push(...more)
  }
}

async function listOpen({ db }: Queue): Promise<string[]> {
  const rows = await db.selectFrom('webhook_dispatch_open').select('document_id').execute()
  return rows.map((row) => row.document_id).sort()
}

describe.each(WRITERS)('the head of a webhook and %s', (_name, prepare) => {
  test('is there when a claim that takes the last other row commits first', async () => {
    await using t = await openQueue()
    const webhook = await t.ledger.addWebhook({ events: ['contract.create'] })
    const write = await prepare(t, webhook)
    await t.ledger.addDispatches(webhook)
    const [claimed] = await t.gate.interleave(t.claim, write)
    expect(await findNextDueAt(t.db)).toEqual(t.ledger.now())
    expect(await claimRest(t, claimed)).toEqual(await listOpen(t))
    expect(await t.ledger.readHeads()).toEqual(new Map())
  })

  test('is there when it commits first, and a claim is made meanwhile', async () => {
    await using t = await openQueue()
    const webhook = await t.ledger.addWebhook({ events: ['contract.create'] })
    const write = await prepare(t, webhook)
    await t.ledger.addDispatches(webhook)
    const [, claimed] = await t.gate.interleave(write, t.claim)
    expect(await claimRest(t, claimed)).toEqual(await listOpen(t))
    expect(await t.ledger.readHeads()).toEqual(new Map())
  })

  test('is made when the webhook has none', async () => {
    await using t = await openQueue()
    const webhook = await t.ledger.addWebhook({ events: ['contract.create'] })
    await (await prepare(t, webhook))(t.db)
    expect((await t.ledger.readHeads()).get(webhook)).toEqual({ visitAt: t.ledger.now(), isHeld: false })
    expect(await claimRest(t, [])).toEqual(await listOpen(t))
  })
})

describe('the head of a webhook that is activated', () => {
  const activate = (t: Queue) => (on: Database) =>
    on.updateTable('webhook').set({ is_actived: true, updated_at: t.ledger.now() }).execute()

  async function openInactive() {
    const t = await openQueue()
    const webhook = await t.ledger.addWebhook()
    await t.ledger.addDispatches(webhook)
    await t.db.updateTable('webhook').set({ is_actived: false }).execute()
    return t
  }

  test('is due after a claim that saw the webhook inactive commits first', async () => {
    await using t = await openInactive()
    // Without peers a claim that finds nothing does not look again, so it cannot see what the activation made due.
    const claimAlone = (on: Database) => claimDispatches(on, t.request({ hasPeers: false }))
    const [claimed] = await t.gate.interleave(claimAlone, activate(t))
    expect(claimed).toEqual([])
    expect(await claimRest(t, claimed)).toEqual(await listOpen(t))
  })

  test('is due after the activation commits first, and a claim is made meanwhile', async () => {
    await using t = await openInactive()
    const [, claimed] = await t.gate.interleave(activate(t), t.claim)
    expect(await claimRest(t, claimed)).toEqual(await listOpen(t))
  })

  test('is due when it rested before', async () => {
    await using t = await openInactive()
    expect(await t.claim(t.db)).toEqual([])
    expect([...(await t.ledger.readHeads()).values()]).toEqual([{ visitAt: t.ledger.now(), isHeld: true }])
    await activate(t)(t.db)
    expect(await claimRest(t, [])).toEqual(await listOpen(t))
  })
})

describe('the account of a subscription', () => {
  const listAccounts = async ({ db }: Queue) =>
    (await db.selectFrom('webhook_event').select('account').execute()).map((row) => row.account)

  test('follows a change of scope that waits for the subscription', async () => {
    await using t = await openQueue()
    const [account, webhook] = [await t.ledger.addAccount(), await t.ledger.addWebhook()]
    await t.gate.interleave(
      (on) => buildLedger(on, t.clock).subscribe(webhook, 'contract.create'),
      (on) => on.updateTable('webhook').set({ is_global: false, account }).execute(),
    )
    expect(await listAccounts(t)).toEqual([account])
  })

  test('is that of a change of scope for which the subscription waits', async () => {
    await using t = await openQueue()
    const [account, webhook] = [await t.ledger.addAccount(), await t.ledger.addWebhook()]
    await t.gate.interleave(
      (on) => on.updateTable('webhook').set({ is_global: false, account }).execute(),
      (on) => buildLedger(on, t.clock).subscribe(webhook, 'contract.create'),
    )
    expect(await listAccounts(t)).toEqual([account])
  })

  test('follows each change of scope, of deleted subscriptions too, and is none for a global webhook', async () => {
    await using t = await openQueue()
    const [first, second] = [await t.ledger.addAccount(), await t.ledger.addAccount()]
    await t.ledger.addEventType('contract.update')
    const webhook = await t.ledger.addWebhook({ account: first, events: ['contract.create', 'contract.update'] })
    const other = await t.ledger.addWebhook({ account: first, events: ['contract.create'] })
    const change = (set: { is_global?: boolean; account?: string | null }) =>
      t.db.updateTable('webhook').set(set).where('document_id', '=', webhook).execute()
    const listOwn = async () =>
      (await t.db.selectFrom('webhook_event').select('account').where('webhook', '=', webhook).execute()).map(
        (row) => row.account,
      )
    expect(await listOwn()).toEqual([first, first])
    await t.db.updateTable('webhook_event').set({ deleted_at: t.ledger.now() }).execute()
    await change({ account: second })
    expect(await listOwn()).toEqual([second, second])
    await change({ is_global: true, account: null })
    expect(await listOwn()).toEqual([null, null])
    await change({ is_global: false, account: first })
    expect(await listOwn()).toEqual([first, first])
    const rest = await t.db.selectFrom('webhook_event').select('account').where('webhook', '=', other).execute()
    expect(rest).toEqual([{ account: first }])
  })
})

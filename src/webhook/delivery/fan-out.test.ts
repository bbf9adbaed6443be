import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { openBreakingDatabase, WORKER_POOL } from '../../../test/harness/database/breaking-database.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId, WebhookId } from '../../base/id.ts'
import type { ClaimRequest } from '../../delivery/policy.ts'
import { type RoutedRows, routeBatch, routeFanOut } from '../../delivery/routing/routing.store.ts'
import { type Database, inTransaction, openDatabase } from '../../postgres/statement/database.ts'
import { readClaimedDispatch } from './claimed-work.ts'
import { readTotals } from './delivery-count.store.ts'
import { buildWebhookFanOut, buildWebhookRouting } from './routing.store.ts'

/** Webhooks that an event goes to before it is set aside. */
const ROWS_OF_EVENT = 2

async function openFanOut() {
  const database = await createTestDatabase()
  const workers = openDatabase({ ...WORKER_POOL, connectionString: database.connectionString, size: 4 })
  const { db } = workers
  const clock = buildManualClock()
  const ledger = buildLedger(database.db, clock)
  await ledger.addEventType('contract.create')
  const request = (change: Partial<ClaimRequest> = {}): ClaimRequest => ({
    workerId: 'worker-a',
    now: ledger.now(),
    fastSlots: 0,
    slowSlots: 0,
    slowGroups: [],
    lateGroups: [],
    inFlight: new Map(),
    perGroup: 100,
    hasPeers: true,
    ...change,
  })
  /** Routes what is in the queue; an event for more than two webhooks is set aside. */
  const route = (change: Partial<ClaimRequest> = {}) => {
    const input = { after: '00000000-0000-0000-0000-000000000000', limit: 100, now: ledger.now() }
    const part = buildWebhookRouting(request(change), ROWS_OF_EVENT)
    return routeBatch(db, input, [{ name: 'webhook', part }])
  }
  /** Writes the next part, of `limit` rows. */
  const writePart = (limit: number, change: Partial<ClaimRequest> = {}, on: Database = db) =>
    routeFanOut(on, { name: 'webhook', written: buildWebhookFanOut(request(change), limit), now: ledger.now() })
  const writeAll = async (limit: number, change: Partial<ClaimRequest> = {}) => {
    const parts: RoutedRows[] = []
    for (let part = await writePart(limit, change); part; part = await writePart(limit, change)) parts.push(part)
    return parts
  }
  const addWebhooks = async (count: number, account: AccountId | null = null) => {
    const webhooks: WebhookId[] = []
    for (let index = 0; index < count; index += 1)
      webhooks.push(await ledger.addWebhook({ account, events: ['contract.create'] }))
    return webhooks
  }
  const listWebhooks = async () => (await ledger.listRouted()).map((row) => row.webhook).sort()
  const readRoutedAt = async () =>
    (await database.db.selectFrom('event_occurrence').select('routed_at').execute()).map((row) => row.routed_at)
  const countAside = async () => (await database.db.selectFrom('webhook_fan_out').selectAll().execute()).length
  return {
    ...{ database, db: database.db, clock, ledger, route, writePart, writeAll },
    ...{ addWebhooks, listWebhooks, readRoutedAt, countAside },
    [Symbol.asyncDispose]: async () => {
      await workers.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

describe('an event for more webhooks than one statement writes', () => {
  test('is set aside whole, and is not routed before its last part', async () => {
    await using t = await openFanOut()
    const webhooks = await t.addWebhooks(ROWS_OF_EVENT + 1)
    await t.ledger.recordMany('contract.create')
    const batch = await t.route({ fastSlots: 10 })
    expect(batch).toMatchObject({ events: 1, isAside: true, byPolicy: [{ opened: 0, work: [] }] })
    expect([await t.listWebhooks(), await t.readRoutedAt(), await t.countAside()]).toEqual([[], [null], 1])
    t.clock.advance(5)
    expect(await t.writePart(2)).toMatchObject({ opened: 2 })
    expect([await t.readRoutedAt(), await t.countAside()]).toEqual([[null], 1])
    expect(await t.writePart(2)).toMatchObject({ opened: 1 })
    expect(await t.listWebhooks()).toEqual(webhooks.sort())
    expect([await t.readRoutedAt(), await t.countAside()]).toEqual([[t.ledger.now()], 0])
    expect(await t.writePart(2)).toBeUndefined()
    expect(await readTotals(t.db)).toEqual(new Map([['pending', ROWS_OF_EVENT + 1]]))
  })

  test('is set aside alone: the others of its batch are routed at once', async () => {
    await using t = await openFanOut()
    const account = await t.ledger.addAccount()
    await t.addWebhooks(ROWS_OF_EVENT - 1)
    await t.addWebhooks(2, account)
    await t.ledger.recordMany('contract.create')
    const [large] = await t.ledger.recordMany('contract.create', { account })
    expect(await t.route()).toMatchObject({ events: 2, isAside: true, byPolicy: [{ opened: ROWS_OF_EVENT - 1 }] })
    const rows = await t.db.selectFrom('webhook_fan_out').selectAll().execute()
    expect(rows).toEqual([{ event_id: large!.id, reached: null }])
  })

  test('is none that goes to as many as are allowed, whatever others subscribe', async () => {
    await using t = await openFanOut()
    const [mine, other] = [await t.ledger.addAccount(), await t.ledger.addAccount()]
    await t.addWebhooks(ROWS_OF_EVENT, mine)
    await t.addWebhooks(10, other)
    const [inactive] = await t.addWebhooks(1, mine)
    await t.db.updateTable('webhook').set({ is_actived: false }).where('document_id', '=', inactive!).execute()
    await t.ledger.recordMany('contract.create', { account: mine })
    expect(await t.route()).toMatchObject({ isAside: false, byPolicy: [{ opened: ROWS_OF_EVENT }] })
    expect(await t.readRoutedAt()).toEqual([t.ledger.now()])
  })

  test('is routed to global webhooks and those of its account in the order of their ids', async () => {
    await using t = await openFanOut()
    const [mine, other] = [await t.ledger.addAccount(), await t.ledger.addAccount()]
    const webhooks: WebhookId[] = []
    for (const account of [null, mine, mine, null, null, mine]) {
      webhooks.push(...(await t.addWebhooks(1, account)))
      await t.addWebhooks(1, other)
    }
    await t.ledger.recordMany('contract.create', { account: mine })
    await t.route()
    const seen: WebhookId[][] = []
    while (await t.writePart(2)) {
      const before = new Set(seen.flat())
      seen.push((await t.listWebhooks()).filter((id) => !before.has(id)))
    }
    const ordered = [...webhooks].sort()
    expect(seen).toEqual([ordered.slice(0, 2), ordered.slice(2, 4), ordered.slice(4, 6), []])
  })

  test('has as many rows claimed as there are slots, and the others wait in the queue of their webhooks', async () => {
    await using t = await openFanOut()
    const webhooks = await t.addWebhooks(5)
    await t.ledger.recordMany('contract.create')
    await t.route()
    const part = await t.writePart(5, { fastSlots: 2 })
    const claimed = part!.work.map(readClaimedDispatch)
    expect(claimed.map((claim) => [claim.attempt, claim.fence])).toEqual([
      [1, 1],
      [1, 1],
    ])
    const mine = new Set<string>(claimed.map((claim) => claim.group))
    expect([...(await t.ledger.readHeads()).keys()].sort()).toEqual(webhooks.filter((id) => !mine.has(id)).sort())
    expect(part!.nextDueAt).toEqual(t.ledger.now())
  })
})

describe('the rules of an event that is routed in parts', () => {
  test('are judged of each webhook when its part is written', async () => {
    await using t = await openFanOut()
    const ordered = (await t.addWebhooks(6)).sort()
    await t.ledger.recordMany('contract.create')
    await t.route()
    await t.writePart(2)
    const change = (id: WebhookId, set: { is_actived?: boolean; deleted_at?: Date }) =>
      t.db.updateTable('webhook').set(set).where('document_id', '=', id).execute()
    // Two that were routed to, and four that were not.
    await change(ordered[0]!, { is_actived: false })
    await change(ordered[2]!, { is_actived: false })
    await change(ordered[3]!, { deleted_at: t.ledger.now() })
    await sql`update webhook_event set deleted_at = now() where webhook = ${ordered[4]!}`.execute(t.db)
    t.clock.advance(1)
    await t.addWebhooks(1)
    await t.writeAll(2)
    expect(await t.listWebhooks()).toEqual([ordered[0], ordered[1], ordered[5]])
  })

  test('hold for a webhook once, though it changes its scope between the parts', async () => {
    await using t = await openFanOut()
    const account = await t.ledger.addAccount()
    const ordered = (await t.addWebhooks(4)).sort()
    await t.ledger.recordMany('contract.create', { account })
    await t.route()
    await t.writePart(2)
    for (const id of [ordered[0]!, ordered[3]!])
      await t.db.updateTable('webhook').set({ is_global: false, account }).where('document_id', '=', id).execute()
    await t.writeAll(1)
    expect(await t.listWebhooks()).toEqual(ordered)
  })

  test('end the event when its type is deactivated between the parts', async () => {
    await using t = await openFanOut()
    await t.addWebhooks(5)
    await t.ledger.recordMany('contract.create')
    await t.route()
    await t.writePart(2)
    await t.db.updateTable('event').set({ is_actived: false }).execute()
    expect(await t.writeAll(2)).toHaveLength(1)
    expect(await t.listWebhooks()).toHaveLength(2)
    expect([await t.readRoutedAt(), await t.countAside()]).toEqual([[t.ledger.now()], 0])
  })
})

describe('parts of several processes', () => {
  test('are written by one of them at a time, and the others do not wait', async () => {
    await using t = await openFanOut()
    await t.addWebhooks(4)
    await t.ledger.recordMany('contract.create')
    await t.route()
    await inTransaction(t.db, async (first) => {
      expect(await t.writePart(2, {}, first)).toMatchObject({ opened: 2 })
      await inTransaction(t.db, async (second) => {
        await sql`set local lock_timeout = '1s'`.execute(second)
        expect(await t.writePart(2, { workerId: 'worker-b' }, second)).toBeUndefined()
      })
    })
    expect(await t.writePart(2)).toMatchObject({ opened: 2 })
  })

  test('never write a webhook twice or leave one out, whoever writes them', async () => {
    await using t = await openFanOut()
    const webhooks = await t.addWebhooks(30)
    const events = await t.ledger.recordMany('contract.create', { count: 3 })
    await t.route()
    const write = async (workerId: string) => {
      let rows = 0
      for (let misses = 0; misses < 20 && (await t.countAside()) > 0; ) {
        const part = await t.writePart(3, { workerId, fastSlots: 2 })
        rows += part?.opened ?? 0
        misses = part ? 0 : misses + 1
      }
      return rows
    }
    const rows = await Promise.all(['a', 'b', 'c', 'd'].map(write))
    await t.writeAll(3)
    expect(rows.reduce((sum, item) => sum + item, 0)).toBeGreaterThan(0)
    const routed = (await t.ledger.listRouted()).map((row) => `${row.event_id} ${row.webhook}`)
    const wanted = events.flatMap((event) => webhooks.map((webhook) => `${event.id} ${webhook}`))
    expect(routed.sort()).toEqual(wanted.sort())
    expect(await t.readRoutedAt()).toEqual(events.map(() => t.ledger.now()))
  })

  test.each(['before', 'after'] as const)(
    'are written or not at all when the connection breaks %s the statement, and the next one goes on',
    async (at) => {
      await using t = await openFanOut()
      const webhooks = await t.addWebhooks(7)
      await t.ledger.recordMany('contract.create')
      await t.route()
      await t.writePart(2)
      await using breaking = openBreakingDatabase(t.database, { at, statement: 0 })
      await expect(t.writePart(2, { fastSlots: 2 }, breaking.db)).rejects.toThrow()
      await breaking.hasEnded()
      expect(await t.listWebhooks()).toHaveLength(at === 'before' ? 2 : 4)
      await t.writeAll(2)
      expect(await t.listWebhooks()).toEqual(webhooks.sort())
    },
  )
})

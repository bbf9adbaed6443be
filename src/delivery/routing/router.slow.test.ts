import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { DRAFT, openRouter } from '../../../test/harness/delivery/router-under-test.ts'
import type { EventId } from '../../base/id.ts'
import { recordEvents } from '../../event/occurrence/event.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { FIRST } from './queue-looks.ts'
import { routeBatch } from './routing.store.ts'

describe('routing in a statement of the request path', () => {
  test('gets the parts of all policies, and hands over what the statement claimed', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 1
    t.second.probe.slots = 1
    const inline = await t.build([t.first.dispatcher, t.second.dispatcher]).takeInline()
    expect(inline?.policies.map((policy) => policy.name)).toEqual(['first', 'second'])
    await inline?.accept([
      { work: [1, 2], opened: 2, nextDueAt: null },
      { work: [], opened: 3, nextDueAt: new Date(0) },
    ])
    expect([t.first.probe.accepted, t.first.probe.notified]).toEqual([[1, 2], 0])
    expect([t.second.probe.accepted, t.second.probe.notified]).toEqual([[], 1])
  })

  test('is not there while the first policy has no room', async () => {
    await using t = await openRouter()
    t.second.probe.slots = 1
    const router = t.build([t.first.dispatcher, t.second.dispatcher])
    expect(await router.takeInline()).toBeUndefined()
    t.first.probe.slots = 1
    expect(await router.takeInline()).toBeDefined()
  })

  test('is there while another policy has no room: its rows wait in its queue', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 1
    expect(await t.build([t.first.dispatcher, t.second.dispatcher]).takeInline()).toBeDefined()
  })

  test('waits 5 ms for another statement that claims, and is not there when that one goes on', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 1
    t.second.probe.slots = 1
    const router = t.build([t.first.dispatcher, t.second.dispatcher])
    await t.second.dispatcher.mutex.take()
    const late = router.takeInline()
    await new Promise(setImmediate)
    t.clock.advance(5)
    expect(await late).toBeUndefined()
    const inTime = router.takeInline()
    t.second.dispatcher.mutex.release()
    expect(await inTime).toBeDefined()
  })

  test('is not there when the slots were taken while it waited for its turn, which is free again', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 1
    const router = t.build()
    await t.first.dispatcher.mutex.take()
    const late = router.takeInline()
    t.first.probe.slots = 0
    t.first.dispatcher.mutex.release()
    expect(await late).toBeUndefined()
    t.first.probe.slots = 1
    expect(await router.takeInline()).toBeDefined()
  })

  test('is not there when the wait for a turn fails, and leaves every other turn free', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 1
    await t.second.dispatcher.mutex.take()
    const router = t.build([t.first.dispatcher, t.second.dispatcher], async () => {
      throw new Error('no timer')
    })
    expect(await router.takeInline()).toBeUndefined()
    await t.first.dispatcher.mutex.take()
  })

  test('looks for what a statement claimed when a dispatcher does not accept it, and ends its turn', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 1
    const router = t.build()
    const inline = await router.takeInline()
    t.first.dispatcher.accept = async () => {
      throw new Error('refused')
    }
    await expect(inline?.accept([{ work: [1], opened: 1, nextDueAt: null }])).rejects.toThrow('refused')
    expect(t.first.probe.leaks).toBe(1)
    expect(await router.takeInline()).toBeDefined()
  })

  test('looks for claims that a failed statement may have made', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 1
    t.second.probe.slots = 1
    const router = t.build()
    ;(await router.takeInline())?.fail()
    expect(t.first.probe.leaks).toBe(1)
    expect(await router.takeInline()).toBeDefined()
  })

  test('lets the router wait for its end', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 1
    t.second.probe.slots = 1
    await t.record()
    const router = t.build()
    const inline = await router.takeInline()
    const drained = router.drain()
    await inline?.accept([])
    expect(await drained).toEqual({ events: 1, dispatches: 1 })
  })
})

describe('a round of the router', () => {
  test('routes an event to all policies in one transaction, and marks it with the time of its routing', async () => {
    await using t = await openRouter()
    const [event] = await t.record()
    t.clock.advance(7)
    t.second.probe.fanOut = 3
    const drained = await t.build([t.first.dispatcher, t.second.dispatcher]).drain()
    expect(drained).toEqual({ events: 1, dispatches: 4 })
    const rows = await t.listRows()
    expect(rows.map((row) => [row.policy, row.event_id, row.nth]).sort()).toEqual([
      ['first', event!.id, 1],
      ['second', event!.id, 1],
      ['second', event!.id, 2],
      ['second', event!.id, 3],
    ])
    const stored = await t.db.selectFrom('event_occurrence').select('routed_at').execute()
    expect(stored).toEqual([{ routed_at: t.ledger.now() }])
    expect(await t.countWaiting()).toBe(0)
  })

  test('keeps the event, and what every policy wrote of it, out of the ledger when one policy fails', async () => {
    await using t = await openRouter()
    await t.record()
    const router = t.build([t.first.dispatcher, t.second.dispatcher])
    t.second.probe.fanOut = 2_147_483_648
    await expect(router.drain()).rejects.toThrow('out of range')
    expect(await t.listRows()).toEqual([])
    expect(await t.countWaiting()).toBe(1)
    // Its statement may have run on the server: what it claimed is looked for.
    expect([t.first.probe.leaks, t.second.probe.leaks]).toEqual([1, 1])
    t.second.probe.fanOut = 1
    expect(await router.drain()).toEqual({ events: 1, dispatches: 2 })
  })

  test('gives each dispatcher what was claimed for it, and no other', async () => {
    await using t = await openRouter()
    const [event] = await t.record()
    t.first.probe.slots = 1
    await t.build([t.first.dispatcher, t.second.dispatcher]).drain()
    expect(t.first.probe).toMatchObject({ accepted: [[event!.id, 1]], notified: 0 })
    expect(t.second.probe).toMatchObject({ accepted: [], notified: 0 })
  })

  test('lets a dispatcher look when a row is due and not for one that is due later', async () => {
    await using t = await openRouter()
    t.first.probe.nextDueAt = new Date(t.clock.now() + 1)
    const router = t.build()
    await router.drain()
    expect(t.first.probe.notified).toBe(0)
    t.clock.advance(1)
    await router.drain()
    expect(t.first.probe.notified).toBe(1)
  })
})

describe('routing a backlog', () => {
  test('routes each event exactly once when several routers take one backlog at the same time', async () => {
    await using t = await openRouter()
    const events = await t.record(1_507)
    const routed = await Promise.all(Array.from({ length: 4 }, () => t.build().drain()))
    // A router that finds the rest taken by others may end before they commit.
    routed.push(await t.build().drain())
    expect(routed.reduce((sum, event) => sum + event.events, 0)).toBe(events.length)
    const rows = await t.listRows()
    expect(rows).toHaveLength(events.length)
    expect(new Set(rows.map((row) => row.event_id)).size).toBe(rows.length)
  })

  test('does not lose an event that commits after later ones were routed', async () => {
    await using t = await openRouter()
    const router = t.build()
    let late: EventId | undefined
    await inTransaction(t.db, async (open) => {
      const [first] = await recordEvents(t.ledger.deps, open, [DRAFT], t.ledger.now())
      late = first!.id
      const [later] = await t.record()
      await router.drain()
      expect((await t.listRows()).map((row) => row.event_id)).toEqual([later!.id])
    })
    await router.drain()
    expect((await t.listRows()).map((row) => row.event_id)).toContain(late)
  })

  test('routes nothing of a transaction that was rolled back', async () => {
    await using t = await openRouter()
    const change = inTransaction(t.db, async (tx) => {
      await recordEvents(t.ledger.deps, tx, [DRAFT], t.ledger.now())
      throw new Error('refused')
    })
    await expect(change).rejects.toThrow('refused')
    expect(await t.build().drain()).toEqual({ events: 0, dispatches: 0 })
  })

  test('takes 500 events in one statement at most, and goes on until none waits', async () => {
    await using t = await openRouter()
    const router = t.build()
    expect(await router.drain()).toEqual({ events: 0, dispatches: 0 })
    for (const count of [499, 500, 501, 1_001]) {
      await t.record(count)
      expect(await router.drain()).toEqual({ events: count, dispatches: count })
    }
    expect(await countStatements(t)).toEqual([499, 500, 500, 1, 500, 500, 1])
  })

  test('takes no more events than there are slots for', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 10
    await t.record(25)
    expect(await t.build().drain()).toEqual({ events: 25, dispatches: 25 })
    expect(await countStatements(t)).toEqual([10, 10, 5])
  })

  test('takes nothing once it was stopped', async () => {
    await using t = await openRouter()
    await t.record()
    const router = t.build()
    router.stop()
    expect(await router.drain()).toEqual({ events: 0, dispatches: 0 })
  })

  test('takes the events behind an id alone, and says which was the last', async () => {
    await using t = await openRouter()
    const [first, , third] = await t.record(3)
    const { policy, measureRoom } = t.first.dispatcher
    const parts = () => [{ name: policy.name, part: policy.buildRouting(measureRoom()) }]
    const request = { after: first!.id, limit: 10, now: t.ledger.now() }
    expect(await routeBatch(t.db, request, parts())).toMatchObject({ events: 2, last: third!.id })
    expect(await t.countWaiting()).toBe(1)
  })

  test('passes over an event that another process takes, without a wait for it', async () => {
    await using t = await openRouter()
    const [taken, free] = await t.record(2)
    await inTransaction(t.db, async (other) => {
      await other.selectFrom('event_queue').where('event_id', '=', taken!.id).select('event_id').forUpdate().execute()
      await inTransaction(t.db, async (tx) => {
        await sql`set local lock_timeout = '1s'`.execute(tx)
        const { policy, measureRoom } = t.first.dispatcher
        const parts = [{ name: policy.name, part: policy.buildRouting(measureRoom()) }]
        const request = { after: FIRST, limit: 10, now: t.ledger.now() }
        expect(await routeBatch(tx, request, parts)).toMatchObject({ events: 1, last: free!.id })
      })
    })
  })

  test('writes the parts of all policies of what was set aside', async () => {
    await using t = await openRouter()
    Object.assign(t.first.probe, { slots: 10, left: 25 })
    Object.assign(t.second.probe, { slots: 10, left: 3 })
    const drained = await t.build([t.first.dispatcher, t.second.dispatcher]).drain()
    expect(drained).toEqual({ events: 0, dispatches: 28 })
    expect([t.first.probe.parts, t.second.probe.parts]).toEqual([[10, 10, 5], [3]])
  })

  test('leaves an event that was set aside unmarked, and marks the others', async () => {
    await using t = await openRouter()
    await t.record()
    t.first.probe.isAside = true
    // A policy that sets nothing aside is beside it.
    await t.build([t.first.dispatcher, t.second.dispatcher]).drain()
    t.first.probe.isAside = false
    await t.record()
    await t.build([t.first.dispatcher, t.second.dispatcher]).drain()
    const stored = await t.db.selectFrom('event_occurrence').select('routed_at').orderBy('document_id').execute()
    expect(stored).toEqual([{ routed_at: null }, { routed_at: t.ledger.now() }])
  })

  test('judges by the batch before how many events make 10,000 rows of the policy with the most', async () => {
    await using t = await openRouter()
    t.first.probe.fanOut = 60
    const router = t.build([t.first.dispatcher, t.second.dispatcher])
    await t.record(10)
    await router.drain()
    await t.record(400)
    expect(await router.drain()).toEqual({ events: 400, dispatches: 24_400 })
    expect(await countStatements(t)).toEqual([10, 166, 166, 68])
  })

  test('takes one event at a time after a statement that failed', async () => {
    await using t = await openRouter()
    const router = t.build()
    await t.record(3)
    t.first.probe.fanOut = 2_147_483_648
    await expect(router.drain()).rejects.toThrow('out of range')
    t.first.probe.fanOut = 1
    await router.drain()
    expect(await countStatements(t)).toEqual([1, 2])
  })
})

/** How many events each routing statement took, in the order of the statements. */
async function countStatements({ db }: Awaited<ReturnType<typeof openRouter>>): Promise<number[]> {
  const { rows } = await sql<{ events: number }>`
    select count(*) as events from event_occurrence group by xmin::text order by xmin::text::bigint`.execute(db)
  return rows.map((row) => row.events)
}

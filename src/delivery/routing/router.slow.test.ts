import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { buildListeningLogger } from '../../../test/harness/app/listening-logger.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildProbeDispatcher } from '../../../test/harness/delivery/probe-dispatcher.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import type { EventId } from '../../base/id.ts'
import { recordEvents } from '../../event/occurrence/event.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { fragment } from '../../postgres/statement/fragment.ts'
import type { ClaimRequest, RoutingPart } from '../policy.ts'
import { buildRouter, type RouterDeps } from './router.ts'

const DRAFT = {
  type: 'contract.create',
  accountScope: 'account',
  account: null,
  resource: 'contract',
  action: 'create',
  resourceId: null,
  url: null,
} as const

/** A dispatcher of a policy that writes `fanOut` rows for each event into a table of this test, and what it was given. */
function buildProbe(name: string) {
  const probe = {
    fanOut: 1,
    slots: 0,
    hasRoom: true,
    nextDueAt: null as Date | null,
    accepted: [] as unknown[],
    notified: 0,
    leaks: 0,
    /** Rows of an event that was set aside, and of the parts that were written of them; a broken part fails. */
    left: 0,
    parts: [] as number[],
    isBroken: false,
  }
  /** Claims as many rows as there are slots. */
  const write = fragment<{ fanOut: number; fastSlots: number; dueAt: Date | null }>(
    name,
    `
      ${name}_opened as (
        insert into routed_row select '${name}', document_id, n from ${name}_matched, generate_series(1, $fanOut::int) n
        returning event_id as id
      ),
      ${name}_work as (
        select json_build_array(r.document_id, n) as work from ${name}_matched r, generate_series(1, $fanOut::int) n
        order by n, r.document_id limit $fastSlots
      ),
      ${name}_next as (select $dueAt::timestamptz as due_at)`,
  )
  const buildRouting = ({ fastSlots }: ClaimRequest): RoutingPart => ({
    matched: 'select document_id from routed',
    written: write({ fanOut: probe.fanOut, fastSlots, dueAt: probe.nextDueAt }),
  })
  const writePart = fragment<{ rows: number; isBroken: boolean }>(
    name,
    `
      ${name}_reached as (select gen_random_uuid() as event_id, false as is_last where $rows::int > 0),
      ${name}_opened as (
        select n as id from generate_series(1, $rows::int / case when $isBroken::boolean then 0 else 1 end) n),
      ${name}_work as (select null::json as work where false),
      ${name}_next as (select null::timestamptz as due_at)`,
  )
  const buildFanOut = (_request: ClaimRequest, limit: number) => {
    const rows = Math.min(limit, probe.left)
    if (rows > 0) probe.parts.push(rows)
    if (!probe.isBroken) probe.left -= rows
    return writePart({ rows, isBroken: probe.isBroken })
  }
  const dispatcher = buildProbeDispatcher(probe, { name, buildRouting, buildFanOut })
  return { probe, dispatcher }
}

async function openRouter(onLine: (message: string) => void = () => {}) {
  const database = await createTestDatabase()
  const { db } = database
  await sql`create table routed_row (policy text, event_id uuid, nth integer)`.execute(db)
  const clock = buildManualClock()
  const ledger = buildLedger(db, clock)
  const [first, second] = [buildProbe('first'), buildProbe('second')]
  const build = (dispatchers: RouterDeps['dispatchers'] = [first.dispatcher]) =>
    buildRouter({ clock, db, logger: buildListeningLogger(onLine), dispatchers })
  const listRows = async () => {
    const { rows } = await sql<{ policy: string; event_id: EventId; nth: number }>`select * from routed_row`.execute(db)
    return rows
  }
  const countWaiting = async () => {
    const { rows } = await sql<{ count: number }>`select count(*) from event_queue`.execute(db)
    return rows[0]?.count
  }
  const record = (count = 1) => ledger.recordMany('contract.create', { count })
  const rest = { database, db, clock, ledger, first, second, build, listRows, countWaiting, record }
  const dispose = async () => {
    // Without it the database is as it was, and serves the next test.
    await sql`drop table routed_row`.execute(db)
    await database[Symbol.asyncDispose]()
  }
  return { ...rest, [Symbol.asyncDispose]: dispose }
}

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

  test('judges by the batch before how many events make 10,000 rows', async () => {
    await using t = await openRouter()
    t.first.probe.fanOut = 60
    const router = t.build()
    await t.record(10)
    await router.drain()
    await t.record(400)
    expect(await router.drain()).toEqual({ events: 400, dispatches: 24_000 })
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

describe('a running router', () => {
  test('routes what is recorded once it is notified, and looks by itself after a second', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 10
    const router = t.build()
    const running = router.run()
    try {
      await t.record()
      router.notify()
      await waitFor('the event of the notification', async () => (await t.listRows()).length === 1)
      await t.record()
      await waitFor('the event of the poll', async () => {
        t.clock.advance(100)
        return (await t.listRows()).length === 2
      })
    } finally {
      router.stop()
      await running
    }
  })

  test('waits for room for at most 50 ms, and goes on as soon as there is some', async () => {
    await using t = await openRouter()
    const router = t.build()
    await t.record()
    const running = router.run()
    try {
      // The slot is taken with the event, not later: the router goes on at once.
      const { probe } = t.first
      Object.defineProperty(probe, 'slots', { get: () => (probe.accepted.length === 0 ? 1 : 0) })
      router.notifyRoom()
      await waitFor('the event with room', async () => probe.accepted.length === 1)
      await t.record()
      router.notify()
      await waitFor('the event without room', async () => {
        t.clock.advance(50)
        return (await t.listRows()).length === 2
      })
      expect(probe.accepted).toHaveLength(1)
    } finally {
      router.stop()
      await running
    }
  })

  test('writes part after part of an event that was set aside, and routes between them what comes meanwhile', async () => {
    await using t = await openRouter()
    Object.assign(t.first.probe, { slots: 10, left: Number.MAX_SAFE_INTEGER })
    const router = t.build()
    const running = router.run()
    try {
      await waitFor('some parts', () => t.first.probe.parts.length > 3)
      await t.record()
      router.notify()
      await waitFor('the event that came meanwhile', async () => (await t.listRows()).length === 1)
      t.first.probe.left = 25
      t.first.probe.parts.length = 0
      await waitFor('the last part', () => t.first.probe.left === 0)
      expect(t.first.probe.parts).toEqual([10, 10, 5])
    } finally {
      router.stop()
      await running
    }
  })

  test('routes events while the parts of another one fail, and tries those again after a second', async () => {
    let failures = 0
    await using t = await openRouter((message) => {
      if (message.startsWith('part of a fan-out failed')) failures += 1
    })
    Object.assign(t.first.probe, { slots: 10, left: 5, isBroken: true })
    const router = t.build()
    const running = router.run()
    try {
      await waitFor('a part that failed', () => failures === 1)
      await t.record()
      router.notify()
      await waitFor('the event that came meanwhile', async () => (await t.listRows()).length === 1)
      expect(failures).toBe(1)
      t.first.probe.isBroken = false
      t.clock.advance(1_000)
      await waitFor('the part', () => t.first.probe.left === 0)
    } finally {
      router.stop()
      await running
    }
  })

  test('routes an event that committed late, with an id from long before', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 10
    const router = t.build()
    const running = router.run()
    try {
      const [open, committed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const late = inTransaction(t.db, async (tx) => {
        await recordEvents(t.ledger.deps, tx, [DRAFT], t.ledger.now())
        open.resolve()
        await committed.promise
      })
      await open.promise
      for (let second = 0; second < 20; second += 1) t.clock.advance(1_000)
      await t.record()
      router.notify()
      await waitFor('the later event', async () => (await t.listRows()).length === 1)
      committed.resolve()
      await late
      await waitFor('the late event', async () => {
        t.clock.advance(500)
        return (await t.listRows()).length === 2
      })
    } finally {
      router.stop()
      await running
    }
  })

  test('goes on after a round that failed', async () => {
    let failures = 0
    await using t = await openRouter((message) => {
      if (message.startsWith('router round failed')) failures += 1
    })
    t.first.probe.slots = 10
    t.first.probe.fanOut = 2_147_483_648
    const router = t.build()
    const running = router.run()
    try {
      await t.record()
      router.notify()
      await waitFor('a round that failed', () => failures > 0)
      t.first.probe.fanOut = 1
      await waitFor('the event', async () => {
        t.clock.advance(1_000)
        return (await t.listRows()).length === 1
      })
    } finally {
      router.stop()
      await running
    }
  })
})

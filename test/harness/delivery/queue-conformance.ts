import { describe, expect, test } from 'vitest'
import type { Claim, DeliveryQueue, Work } from '../../../src/delivery/policy.ts'
import { describeGroupOrder } from './queue-group-order.ts'
import { describeLateGroups } from './queue-late-groups.ts'
import { buildWorker, countByGroup, idsOf, MINUTE_MS, type QueueUnderTest } from './queue-under-test.ts'

/** The attempts of a row of the queue of webhooks that the schedule makes at most (docs/contract/delivery.md#fixed-constants). */
const SCHEDULED_ATTEMPTS = 5

/** In what the queues of policies differ. */
export interface QueueTraits {
  /** Attempts of a row at most. */
  attempts?: number
  /** Whether one worker at a time has rows of a group, and takes them in their order. */
  isOrdered?: boolean
}

/** Describes what every implementation of the queue does. `open` makes an empty one. */
export function describeQueue<Claimed extends Work, Ended extends Claim, Settled>(
  name: string,
  open: () => Promise<QueueUnderTest<Claimed, Ended, Settled>>,
  { attempts = SCHEDULED_ATTEMPTS, isOrdered = false }: QueueTraits = {},
): void {
  describe(`${name}: order`, () => describeOrder(open))
  describe(`${name}: caps`, () => describeCaps(open))
  describe(`${name}: a late group`, () => describeLateGroups(open))
  if (isOrdered) describe(`${name}: order of a group`, () => describeGroupOrder(open))
  else describe(`${name}: caps over workers`, () => describeSharedCaps(open))
  describe(`${name}: turns of groups`, () => describeTurns(open))
  describe(`${name}: many groups`, () => describeManyGroups(open))
  describe(`${name}: fences`, () => describeFences(open))
  describe(`${name}: release and reclaim`, () => describeReturns(open))
  describe(`${name}: attempts`, () => describeAttempts(open, attempts))
  describe(`${name}: the next due row`, () => describeNextDue(open))
  describe(`${name}: broken connections`, () => describeBreaks(open))
}

type Opens<Claimed extends Work, Ended extends Claim, Settled> = () => Promise<QueueUnderTest<Claimed, Ended, Settled>>

function describeOrder<C extends Work, E extends Claim, S>(open: Opens<C, E, S>): void {
  test('claims what is due at this millisecond, and leaves what is due in the next', async () => {
    await using t = await open()
    const [worker, group, now] = [buildWorker(t), await t.addGroup(), t.clock.now()]
    const [due] = await t.addRows(group)
    const [next] = await t.addRows(group, { dueAt: new Date(now + 1) })
    expect(idsOf(await worker.claim())).toEqual([due])
    t.clock.advance(1)
    expect(idsOf(await worker.claim())).toEqual([next])
  })

  test('claims the longest due of a group first', async () => {
    await using t = await open()
    const [worker, group, now] = [buildWorker(t), await t.addGroup(), t.clock.now()]
    const [late] = await t.addRows(group, { dueAt: new Date(now - 1) })
    const [early] = await t.addRows(group, { dueAt: new Date(now - 2) })
    expect(idsOf(await worker.claim({ fastSlots: 1 }))).toEqual([early])
    expect(idsOf(await worker.claim({ fastSlots: 1 }))).toEqual([late])
  })

  test('counts the attempt with the claim, and claims no row that is claimed or ended', async () => {
    await using t = await open()
    const [worker, group] = [buildWorker(t), await t.addGroup()]
    const ids = await t.addRows(group, { count: 2 })
    const claimed = await worker.claim()
    for (const id of ids) expect(await t.readRow(id)).toEqual({ state: 'claimed', attempts: 1, dueAt: null })
    t.clock.advance(86_400_000)
    expect(await worker.claim()).toEqual([])
    await worker.settle(claimed, 'delivered')
    expect(await worker.claim()).toEqual([])
    for (const id of ids) expect(await t.readRow(id)).toEqual({ state: 'ended', attempts: 1, dueAt: null })
  })

  test('lets the rows of a group rest while it is not active', async () => {
    await using t = await open()
    if (!t.setActive) return
    const [worker, group] = [buildWorker(t), await t.addGroup()]
    const ids = await t.addRows(group, { count: 2 })
    await t.setActive(group, false)
    expect(await worker.claim()).toEqual([])
    t.clock.advance(MINUTE_MS)
    const later = await t.addRows(group)
    expect(await worker.claim()).toEqual([])
    await t.setActive(group, true)
    expect(idsOf(await worker.claim()).sort()).toEqual([...ids, ...later].sort())
  })
}

function describeCaps<C extends Work, E extends Claim, S>(open: Opens<C, E, S>): void {
  test('gives no more rows than there are slots, and none without a slot', async () => {
    await using t = await open()
    const [worker, group] = [buildWorker(t), await t.addGroup()]
    await t.addRows(group, { count: 10 })
    expect(await worker.claim({ fastSlots: 0 })).toEqual([])
    expect(await worker.claim({ fastSlots: 3 })).toHaveLength(3)
  })

  test('holds the cap of a group, and claims again when an attempt ended', async () => {
    await using t = await open()
    const [worker, group] = [buildWorker(t), await t.addGroup()]
    await t.addRows(group, { count: 10 })
    const claimed = await worker.claim({ perGroup: 4 })
    expect(claimed).toHaveLength(4)
    expect(await worker.claim({ perGroup: 4 })).toEqual([])
    await worker.settle(claimed.slice(0, 1), 'delivered')
    expect(await worker.claim({ perGroup: 4 })).toHaveLength(1)
  })

  test('gives slow groups the slow slots only, and the others the fast ones', async () => {
    await using t = await open()
    const [worker, slow, prompt] = [buildWorker(t), await t.addGroup(), await t.addGroup()]
    await t.addRows(slow, { count: 20, dueAt: new Date(t.clock.now() - MINUTE_MS) })
    await t.addRows(prompt, { count: 20 })
    const claimed = await worker.claim({ fastSlots: 10, slowSlots: 2, slowGroups: [slow] })
    expect(countByGroup(claimed)).toEqual(
      new Map([
        [slow, 2],
        [prompt, 10],
      ]),
    )
  })
}

function describeSharedCaps<C extends Work, E extends Claim, S>(open: Opens<C, E, S>): void {
  test('holds the cap of a group over two workers, one after the other', async () => {
    await using t = await open()
    const [a, b, group] = [buildWorker(t, 'worker-a'), buildWorker(t, 'worker-b'), await t.addGroup()]
    await t.addRows(group, { count: 10 })
    const first = await a.claim({ fastSlots: 3, perGroup: 4 })
    expect(await b.claim({ perGroup: 4 })).toHaveLength(1)
    expect(await a.claim({ perGroup: 4 })).toEqual([])
    await a.settle(first, 'delivered')
    expect(await b.claim({ perGroup: 4 })).toHaveLength(3)
  })

  test('holds the cap over workers that claim at the same time, and gives no row to two of them', async () => {
    await using t = await open()
    const groups = [await t.addGroup(), await t.addGroup()]
    for (const group of groups) await t.addRows(group, { count: 60 })
    const workers = Array.from({ length: 6 }, (_, index) => buildWorker(t, `worker-${index}`))
    const room = { fastSlots: 9, perGroup: 20 }
    const claims: C[] = []
    for (let round = 0; round < 3; round += 1)
      claims.push(...(await Promise.all(workers.map((worker) => worker.claim(room)))).flat())
    expect(new Set(idsOf(claims)).size).toBe(claims.length)
    expect(countByGroup(claims)).toEqual(new Map(groups.map((group) => [group, 20])))
  })
}

function describeTurns<C extends Work, E extends Claim, S>(open: Opens<C, E, S>): void {
  test('gives each group a row before any group a second one, however long a backlog is due', async () => {
    await using t = await open()
    const [worker, long, short, single] = [buildWorker(t), await t.addGroup(), await t.addGroup(), await t.addGroup()]
    await t.addRows(long, { count: 100, dueAt: new Date(t.clock.now() - MINUTE_MS) })
    await t.addRows(short, { count: 3, dueAt: new Date(t.clock.now() - 2) })
    await t.addRows(single)
    expect(countByGroup(await worker.claim({ fastSlots: 6 }))).toEqual(
      new Map([
        [long, 3],
        [short, 2],
        [single, 1],
      ]),
    )
  })

  test('prefers the group with fewer attempts in flight over the one that is due longer', async () => {
    await using t = await open()
    const [worker, busy, idle] = [buildWorker(t), await t.addGroup(), await t.addGroup()]
    await t.addRows(busy, { count: 10, dueAt: new Date(t.clock.now() - MINUTE_MS) })
    await worker.claim({ fastSlots: 5 })
    await t.addRows(idle, { count: 5 })
    expect(countByGroup(await worker.claim({ fastSlots: 5 }))).toEqual(new Map([[idle, 5]]))
  })

  test('serves groups in turn by the slot, though each attempt ends before the next claim', async () => {
    await using t = await open()
    const worker = buildWorker(t)
    const groups = [await t.addGroup(), await t.addGroup(), await t.addGroup()]
    for (const [index, group] of groups.entries())
      await t.addRows(group, { count: 5, dueAt: new Date(t.clock.now() - (3 - index) * MINUTE_MS) })
    const served: string[] = []
    for (let round = 0; round < 9; round += 1) {
      const claimed = await worker.claim({ fastSlots: 1 })
      served.push(...claimed.map((claim) => claim.group))
      await worker.settle(claimed, 'delivered')
      t.clock.advance(1)
    }
    expect(served).toEqual([...groups, ...groups, ...groups])
  })
}

function describeManyGroups<C extends Work, E extends Claim, S>(open: Opens<C, E, S>): void {
  test('reaches a group behind hundreds that have no room', async () => {
    await using t = await open()
    const worker = buildWorker(t)
    const full: string[] = []
    for (let index = 0; index < 300; index += 1) full.push(await t.addGroup())
    for (const group of full) await t.addRows(group, { count: 2, dueAt: new Date(t.clock.now() - MINUTE_MS) })
    const room = { fastSlots: 1_000, perGroup: 1 }
    // Each claim may look at a part of the groups only.
    for (let round = 0; round < 5; round += 1) {
      await worker.claim(room)
      t.clock.advance(1)
    }
    const group = await t.addGroup()
    const [id] = await t.addRows(group)
    const claimed: C[] = []
    for (let round = 0; round < 5 && claimed.length === 0; round += 1) {
      t.clock.advance(1)
      claimed.push(...(await worker.claim(room)))
    }
    expect(idsOf(claimed)).toEqual([id])
  })
}

function describeFences<C extends Work, E extends Claim, S>(open: Opens<C, E, S>): void {
  test('records the result of a claim once', async () => {
    await using t = await open()
    const [worker, group] = [buildWorker(t), await t.addGroup()]
    const [id] = await t.addRows(group)
    const claimed = await worker.claim()
    expect(await worker.settle(claimed, 'delivered')).toEqual([id])
    expect(await worker.settle(claimed, 'failed')).toEqual([])
    expect(await t.readRow(id!)).toEqual({ state: 'ended', attempts: 1, dueAt: null })
    expect(await t.countLogged(id!)).toBe(1)
  })

  test('voids the result of a claim that was taken back, while the row waits and while another worker has it', async () => {
    await using t = await open()
    const [a, b, group] = [buildWorker(t, 'worker-a'), buildWorker(t, 'worker-b'), await t.addGroup()]
    const [id] = await t.addRows(group)
    const late = await a.claim()
    expect(t.listRecorded(await t.queue.settle(await a.reclaim()))).toEqual([id])
    expect(await a.settle(late, 'delivered')).toEqual([])
    const current = await b.claim()
    expect(current[0]!.fence).toBeGreaterThan(late[0]!.fence)
    expect(await a.settle(late, 'delivered')).toEqual([])
    expect(await b.settle(current, 'delivered')).toEqual([id])
    expect(await t.readRow(id!)).toMatchObject({ state: 'ended', attempts: 2 })
    expect(await t.countLogged(id!)).toBe(2)
  })

  test('records one of two results that come at the same time, for each claim', async () => {
    await using t = await open()
    const [worker, group] = [buildWorker(t), await t.addGroup()]
    const ids = await t.addRows(group, { count: 30 })
    const claimed = await worker.claim()
    const recorded = await Promise.all([
      worker.settle(claimed, 'delivered'),
      worker.settle(claimed, 'interrupted'),
      worker.settle(claimed, 'failed'),
    ])
    expect(recorded.flat().sort()).toEqual([...ids].sort())
    for (const id of ids) expect(await t.countLogged(id)).toBe(1)
  })
}

function describeReturns<C extends Work, E extends Claim, S>(open: Opens<C, E, S>): void {
  test('releases a claim without counting its attempt, due at once, and voids what comes of that claim later', async () => {
    await using t = await open()
    const [worker, group] = [buildWorker(t), await t.addGroup()]
    const [id] = await t.addRows(group, { dueAt: new Date(t.clock.now() - MINUTE_MS) })
    const released = await worker.claim()
    await worker.release(released)
    expect(await t.readRow(id!)).toEqual({ state: 'waiting', attempts: 0, dueAt: new Date(t.clock.now()) })
    expect(await worker.settle(released, 'delivered')).toEqual([])
    const again = await worker.claim()
    expect(idsOf(again)).toEqual([id])
    await worker.release(released)
    expect(await t.readRow(id!)).toEqual({ state: 'claimed', attempts: 1, dueAt: null })
    expect(await worker.settle(again, 'delivered')).toEqual([id])
  })

  test('reclaims the claims of one worker, also of one whose clock was ahead, at most as many as asked for', async () => {
    await using t = await open()
    const [a, b, group] = [buildWorker(t, 'worker-a'), buildWorker(t, 'worker-b'), await t.addGroup()]
    await t.addRows(group, { count: 4 })
    const first = await a.claim({ fastSlots: 3 })
    t.clock.advance(1)
    await t.addRows(await t.addGroup(), { count: 2 })
    expect(await b.claim({ fastSlots: 2 })).toHaveLength(2)
    const second = await a.claim()
    const own = [...idsOf(first), ...idsOf(second)].sort()
    expect(own).toHaveLength(4)
    for (const aheadMs of [0, 1, 2])
      expect(idsOf(await a.reclaim({ now: new Date(t.clock.now() - aheadMs) })).sort()).toEqual(own)
    expect(await a.reclaim({ limit: 2 })).toHaveLength(2)
    // Nothing is taken back before it is settled.
    expect(await a.claim()).toEqual([])
  })

  test('lets the worker itself end a claim that another one has looked at', async () => {
    await using t = await open()
    const [worker, group] = [buildWorker(t), await t.addGroup()]
    const [id] = await t.addRows(group)
    const claimed = await worker.claim()
    const lost = await worker.reclaim()
    expect(await worker.settle(claimed, 'delivered')).toEqual([id])
    expect(t.listRecorded(await t.queue.settle(lost))).toEqual([])
    expect(await t.readRow(id!)).toMatchObject({ state: 'ended', attempts: 1 })
  })
}

function describeAttempts<C extends Work, E extends Claim, S>(open: Opens<C, E, S>, most: number): void {
  /** Lets the row be claimed and ended by `endOne` until nothing of it is due any more; returns how many claims ended. */
  async function exhaust(t: QueueUnderTest<C, E, S>, id: string, endOne: (claims: C[]) => Promise<boolean>) {
    const worker = buildWorker(t)
    let attempts = 0
    for (let round = 0; round < 30; round += 1) {
      const row = await t.readRow(id)
      if (row?.dueAt) t.clock.set(Math.max(t.clock.now(), row.dueAt.getTime()))
      const claimed = await worker.claim()
      if (claimed.length === 0) break
      if (await endOne(claimed)) attempts += 1
    }
    return attempts
  }

  test.each(['failed', 'interrupted'] as const)(
    'ends a row whose attempts are %s with the last attempt',
    async (end) => {
      await using t = await open()
      const [worker, group] = [buildWorker(t), await t.addGroup()]
      const [id] = await t.addRows(group)
      const attempts = await exhaust(t, id!, async (claims) => (await worker.settle(claims, end)).length === 1)
      expect(attempts).toBe(most)
      expect(await t.readRow(id!)).toEqual({ state: 'ended', attempts: most, dueAt: null })
      expect(await t.countLogged(id!)).toBe(most)
    },
  )

  test('makes no further attempt, whatever mixture of results, releases and lost workers comes between', async () => {
    await using t = await open()
    const [worker, group] = [buildWorker(t), await t.addGroup()]
    const [id] = await t.addRows(group)
    const ways = [
      async (claims: C[]) => (await worker.settle(claims, 'failed')).length === 1,
      async (claims: C[]) => {
        await worker.release(claims)
        return false
      },
      async (claims: C[]) => {
        const lost = await worker.reclaim()
        const recorded = await worker.settle(claims, 'failed')
        return recorded.length + t.listRecorded(await t.queue.settle(lost)).length === 1
      },
      async (claims: C[]) => {
        const recorded = t.listRecorded(await t.queue.settle(await worker.reclaim()))
        await worker.settle(claims, 'delivered')
        await worker.release(claims)
        return recorded.length === 1
      },
    ]
    let round = 0
    const attempts = await exhaust(t, id!, (claims) => {
      round += 1
      return ways[round % ways.length]!(claims)
    })
    expect(attempts).toBe(most)
    expect(await t.readRow(id!)).toEqual({ state: 'ended', attempts: most, dueAt: null })
  })
}

function describeNextDue<C extends Work, E extends Claim, S>(open: Opens<C, E, S>): void {
  test('is null without a waiting row, else the time of the earliest', async () => {
    await using t = await open()
    const [worker, now] = [buildWorker(t), t.clock.now()]
    expect(await t.queue.nextDueAt()).toBeNull()
    const [first, second] = [await t.addGroup(), await t.addGroup()]
    await t.addRows(first, { dueAt: new Date(now + 9) })
    await t.addRows(second, { dueAt: new Date(now + 7) })
    expect(await t.queue.nextDueAt()).toEqual(new Date(now + 7))
    t.clock.advance(7)
    const claimed = await worker.claim()
    expect(await t.queue.nextDueAt()).toEqual(new Date(now + 9))
    t.clock.advance(2)
    claimed.push(...(await worker.claim()))
    expect(await t.queue.nextDueAt()).toBeNull()
    await worker.settle(claimed, 'delivered')
    expect(await t.queue.nextDueAt()).toBeNull()
  })

  test('is the time of a retry, and now for what was released or interrupted', async () => {
    await using t = await open()
    const [worker, group] = [buildWorker(t), await t.addGroup()]
    const [id] = await t.addRows(group)
    await worker.settle(await worker.claim(), 'failed')
    const { dueAt } = (await t.readRow(id!))!
    expect(dueAt!.getTime()).toBeGreaterThan(t.clock.now())
    expect(await t.queue.nextDueAt()).toEqual(dueAt)
    t.clock.set(dueAt!.getTime())
    await worker.release(await worker.claim())
    expect(await t.queue.nextDueAt()).toEqual(dueAt)
    await worker.settle(await worker.claim(), 'interrupted')
    expect(await t.queue.nextDueAt()).toEqual(dueAt)
  })

  test('leaves out groups for which the worker has no room', async () => {
    await using t = await open()
    const [worker, full, slow] = [buildWorker(t), await t.addGroup(), await t.addGroup()]
    await t.addRows(full, { count: 2 })
    expect(await worker.claim({ perGroup: 1 })).toHaveLength(1)
    await t.addRows(slow)
    const room = { perGroup: 1, slowGroups: [slow] }
    expect(await t.queue.nextDueAt(worker.request(room))).toBeNull()
    expect(await worker.claim(room)).toEqual([])
    expect(await t.queue.nextDueAt(worker.request({ ...room, slowSlots: 1 }))).toEqual(new Date(t.clock.now()))
    expect(await t.queue.nextDueAt(worker.request({ ...room, perGroup: 2 }))).toEqual(new Date(t.clock.now()))
    expect(await worker.claim({ ...room, perGroup: 2, slowSlots: 1 })).toHaveLength(2)
  })

  test('leaves out groups that rest, once a claim has seen that they do', async () => {
    await using t = await open()
    if (!t.setActive) return
    const [worker, group] = [buildWorker(t), await t.addGroup()]
    await t.addRows(group)
    await t.setActive(group, false)
    await worker.claim()
    expect(await t.queue.nextDueAt()).toBeNull()
    await t.setActive(group, true)
    expect(await t.queue.nextDueAt()).not.toBeNull()
  })
}

/** Calls a queue whose connection may break; undefined when it did, and nothing of the call runs any more. */
interface Breakable<C extends Work, E extends Claim, S> {
  try<Result>(call: (queue: DeliveryQueue<C, E, S>) => Promise<Result>): Promise<Result | undefined>
}

function describeBreaks<C extends Work, E extends Claim, S>(open: Opens<C, E, S>): void {
  /** Runs `work` once for each point at which its connection may break, each on an empty queue. */
  async function breakEverywhere(work: (t: QueueUnderTest<C, E, S>, breakable: Breakable<C, E, S>) => Promise<void>) {
    for (const at of ['before', 'after'] as const)
      for (let statement = 0; ; statement += 1) {
        expect(statement).toBeLessThan(20)
        await using t = await open()
        await using breaking = t.openBreaking({ at, statement })
        await work(t, {
          try: async (call) => {
            const result = await call(breaking.queue).catch(() => undefined)
            if (breaking.hasBroken()) await breaking.hasEnded()
            return result
          },
        })
        if (breaking.hasBroken()) continue
        expect(statement).toBeGreaterThan(0)
        break
      }
  }

  test('in a claim leave each row waiting, or claimed by a worker whose claims are found', async () => {
    await breakEverywhere(async (t, breakable) => {
      const [worker, group] = [buildWorker(t), await t.addGroup()]
      const ids = await t.addRows(group, { count: 3 })
      const claimed = (await breakable.try((queue) => queue.claim(worker.request()))) ?? []
      const rows = await Promise.all(ids.map((id) => t.readRow(id)))
      const held = await worker.reclaim()
      expect(held).toHaveLength(rows.filter((row) => row?.state === 'claimed').length)
      if (claimed.length > 0) expect(idsOf(held).sort()).toEqual(idsOf(claimed).sort())
      await t.queue.settle(held)
      expect(idsOf(await worker.claim()).sort()).toEqual([...ids].sort())
    })
  })

  test('in a settlement leave all of it or nothing, and settling again records each result once', async () => {
    await breakEverywhere(async (t, breakable) => {
      const [worker, group] = [buildWorker(t), await t.addGroup()]
      const ids = await t.addRows(group, { count: 3 })
      const ended = (await worker.claim()).map((claim) => t.end(claim, claim.id === ids[0] ? 'delivered' : 'failed'))
      await breakable.try((queue) => queue.settle(ended))
      const states = (await Promise.all(ids.map((id) => t.readRow(id)))).map((row) => row?.state)
      expect([
        ['claimed', 'claimed', 'claimed'],
        ['ended', 'waiting', 'waiting'],
      ]).toContainEqual(states)
      await t.queue.settle(ended)
      for (const id of ids) expect(await t.countLogged(id)).toBe(1)
      expect(await t.readRow(ids[0]!)).toMatchObject({ state: 'ended', attempts: 1 })
      expect(await t.readRow(ids[1]!)).toMatchObject({ state: 'waiting', attempts: 1 })
      expect(await worker.reclaim()).toEqual([])
    })
  })

  test('in a release leave the claims as they were, or all given back', async () => {
    await breakEverywhere(async (t, breakable) => {
      const [worker, group] = [buildWorker(t), await t.addGroup()]
      const ids = await t.addRows(group, { count: 3 })
      const claimed = await worker.claim()
      await breakable.try((queue) => queue.release(claimed, new Date(t.clock.now())))
      await worker.release(claimed)
      for (const id of ids) expect(await t.readRow(id)).toMatchObject({ state: 'waiting', attempts: 0 })
      expect(idsOf(await worker.claim()).sort()).toEqual([...ids].sort())
    })
  })
}

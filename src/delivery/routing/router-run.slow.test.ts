import { describe, expect, test } from 'vitest'
import { DRAFT, openRouter } from '../../../test/harness/delivery/router-under-test.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { recordEvents } from '../../event/occurrence/event.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import type { RouterDeps } from './router.ts'

type OpenRouter = Awaited<ReturnType<typeof openRouter>>

/** Runs a router until the end of the scope. */
function run({ build, first }: OpenRouter, rest?: RouterDeps['rest']) {
  const router = build([first.dispatcher], rest)
  const running = router.run()
  return {
    ...router,
    [Symbol.asyncDispose]: async () => {
      router.stop()
      await running
    },
  }
}

/** Waits until the router has looked once and found nothing. */
async function untilIdle({ first, countWaiting }: OpenRouter) {
  await waitFor('the first look', () => first.probe.partLooks === 1)
  await takeRounds(countWaiting)
}

/** As long as some statements: a router that does not wait sends some of its own meanwhile. */
async function takeRounds(countWaiting: OpenRouter['countWaiting']) {
  for (let times = 0; times < 5; times += 1) await countWaiting()
}

const countLooks = ({ first: { probe } }: OpenRouter) => [probe.looks, probe.partLooks]

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
      await takeRounds(t.countWaiting)
      expect(await t.listRows()).toHaveLength(1)
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

describe('a router without work', () => {
  test('sends one look a second, and one for each notification', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 10
    await using router = run(t)
    await untilIdle(t)
    t.clock.advance(999)
    await takeRounds(t.countWaiting)
    expect(countLooks(t)).toEqual([1, 1])
    router.notify()
    await waitFor('the look of the notification', () => t.first.probe.looks === 2)
    await takeRounds(t.countWaiting)
    expect(countLooks(t)).toEqual([2, 1])
    t.clock.advance(1)
    await waitFor('the look through the whole queue', () => t.first.probe.partLooks === 2)
    await takeRounds(t.countWaiting)
    expect(countLooks(t)).toEqual([3, 2])
  })

  test('waits a second after a round that failed', async () => {
    let failures = 0
    await using t = await openRouter((message) => {
      if (message.startsWith('router round failed')) failures += 1
    })
    Object.assign(t.first.probe, { slots: 10, fanOut: 2_147_483_648 })
    await t.record()
    await using _router = run(t)
    await waitFor('a round that failed', () => failures === 1)
    t.clock.advance(999)
    await takeRounds(t.countWaiting)
    expect(failures).toBe(1)
    t.clock.advance(1)
    await waitFor('the next one', () => failures === 2)
  })

  test('stops at once while it waits for room', async () => {
    await using t = await openRouter()
    await using _router = run(t)
    await takeRounds(t.countWaiting)
    expect(t.first.probe.looks).toBe(0)
  })
})

describe('a router with a backlog', () => {
  test('goes on without a rest after a full batch', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 10
    await t.record(11)
    await using _router = run(t)
    await waitFor('the rest of the backlog', async () => (await t.listRows()).length === 11)
  })

  test('rests 4 ms after a batch of several events, and not after one', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 10
    const rests: number[] = []
    await t.record()
    await using router = run(t, async (ms) => {
      rests.push(ms)
    })
    await untilIdle(t)
    expect(rests).toEqual([])
    await t.record(2)
    router.notify()
    await waitFor('the rest', () => rests.length > 0)
    await takeRounds(t.countWaiting)
    expect(rests).toEqual([4])
  })
})

describe('a router with an event that was set aside', () => {
  test('writes its parts at once', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 10
    await using router = run(t)
    await untilIdle(t)
    Object.assign(t.first.probe, { isAside: true, left: 5 })
    await t.record()
    router.notify()
    await waitFor('the part', () => t.first.probe.left === 0)
  })

  test('writes part after part without a look between them', async () => {
    await using t = await openRouter()
    t.first.probe.slots = 10
    await using router = run(t)
    await untilIdle(t)
    router.notify()
    await waitFor('the look of the notification', () => t.first.probe.looks === 2)
    t.first.probe.left = 45
    t.clock.advance(1_000)
    await waitFor('the look that finds no further part', () => t.first.probe.partLooks === 7)
    expect(countLooks(t)).toEqual([3, 7])
    expect(t.first.probe.parts).toEqual([10, 10, 10, 10, 5])
  })

  test('waits for room between two parts, for 50 ms at most', async () => {
    await using t = await openRouter()
    Object.assign(t.first.probe, { slots: 10, left: 2_000, hasRoom: false })
    await using _router = run(t)
    await waitFor('the first part', () => t.first.probe.parts.length === 1)
    await takeRounds(t.countWaiting)
    expect(t.first.probe.parts).toEqual([1_000])
    t.clock.advance(50)
    await waitFor('the second part', () => t.first.probe.left === 0)
  })

  test('routes the rest of a backlog between two parts', async () => {
    await using t = await openRouter()
    Object.assign(t.first.probe, { slots: 10, left: Number.MAX_SAFE_INTEGER })
    await t.record(11)
    await using _router = run(t)
    await waitFor('the rest of the backlog', async () => (await t.listRows()).length === 11)
  })

  test('looks through the whole queue once a second between two parts', async () => {
    await using t = await openRouter()
    Object.assign(t.first.probe, { slots: 10, left: Number.MAX_SAFE_INTEGER })
    await using _router = run(t)
    await waitFor('some parts', () => t.first.probe.parts.length > 3)
    await t.record()
    t.clock.advance(1_000)
    await waitFor('the event of another process', async () => (await t.listRows()).length === 1)
  })
})

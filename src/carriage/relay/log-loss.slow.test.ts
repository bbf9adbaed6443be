import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildTestMessage } from '../../../test/harness/carriage/log-conformance.ts'
import { buildRelayUnderTest } from '../../../test/harness/carriage/relay-under-test.ts'
import { beginRepublication } from './outbox.store.ts'

type Step =
  | { do: 'record'; count: number }
  | { do: 'round'; relay: 0 | 1 }
  | { do: 'take over' }
  | { do: 'others append'; count: number }
  | { do: 'lose'; keep: number; isRefilled: boolean }
  | { do: 'pass'; ms: number }

const relay = fc.constantFrom<0 | 1>(0, 1)
const count = fc.integer({ min: 1, max: 4 })
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('record' as const), count }),
    { weight: 3, arbitrary: fc.record({ do: fc.constant('round' as const), relay }) },
    fc.record({ do: fc.constant('take over' as const) }),
    fc.record({ do: fc.constant('others append' as const), count }),
    fc.record({
      do: fc.constant('lose' as const),
      keep: fc.double({ min: 0, max: 1, noNaN: true }),
      isRefilled: fc.boolean(),
    }),
    fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1_000, 6_000, 11_000, 900_000) }),
  ),
  { minLength: 5, maxLength: 25 },
)

let under: Awaited<ReturnType<typeof buildRelayUnderTest>>
beforeAll(async () => {
  under = await buildRelayUnderTest()
})
afterAll(() => under[Symbol.asyncDispose]())

async function begin() {
  under.log.replace()
  await under.pool.query('truncate event_occurrence, event_outbox, event_queue cascade')
  await under.pool.query(`update event_log set relay = null, lease_until = null, incarnation = null, last_sequence = 0,
    own_sequence = null, own_event = null, own_at = null, republish_after = null, republish_until = null`)
  return [under.build('relay-1'), under.build('relay-2')] as const
}

test('a log that loses its end anywhere, while others append at any time, has every event in the end', async () => {
  const run = async (history: readonly Step[]) => {
    const relays = await begin()
    const ids: string[] = []
    const takeOver = () => under.pool.query('update event_log set relay = null')
    for (const step of history) {
      if (step.do === 'record') ids.push(...(await under.record(step.count)))
      else if (step.do === 'round') await relays[step.relay].round()
      else if (step.do === 'take over') await takeOver()
      else if (step.do === 'pass') under.passMs(step.ms)
      else if (step.do === 'others append')
        for (let n = 0; n < step.count; n += 1) under.log.intrude(buildTestMessage(n))
      else {
        const { length } = under.log.entries()
        under.log.lose(Math.round(step.keep * length))
        under.log.reconnect()
        // The number of the last message is as before.
        while (step.isRefilled && under.log.entries().length < length) under.log.intrude(buildTestMessage(0))
      }
    }
    for (const one of [...relays, ...relays]) {
      await takeOver()
      for (let check = 0; check < 2; check += 1) {
        under.passMs(11_000)
        await under.settle(one)
      }
    }
    const stored = new Set(under.stored())
    expect(ids.filter((id) => !stored.has(id))).toEqual([])
    expect(await under.facts()).toMatchObject({ waiting: 0, republishAfter: null })
  }
  await fc.assert(fc.asyncProperty(steps, run), { numRuns: 60 })
}, 240_000)

test('others that appended past the end that was lost do not hide the loss, for hours either', async () => {
  const [first] = await begin()
  const early = await under.record(2)
  await under.settle(first)
  under.passMs(7_200_000)
  const kept = await under.record(2)
  await under.settle(first)
  under.passMs(7_200_000)
  const lost = await under.record(3)
  await under.settle(first)
  under.told.losses.length = 0
  under.log.lose(4)
  under.log.reconnect()
  for (let n = 0; n < 600; n += 1) {
    under.passMs(20_000)
    under.log.intrude(buildTestMessage(n))
  }
  await under.settle(first)
  expect(under.told.losses).toEqual(['behind'])
  const again = under.stored().slice(604)
  expect(again).toEqual([...kept, ...lost])
  expect(again).not.toContain(early[0])
})

test('a database that has few events in the log publishes again all that the log would hold', async () => {
  const [first] = await begin()
  const others = (count: number) => {
    for (let n = 0; n < count; n += 1) under.log.intrude({ ...buildTestMessage(n), id: `${n}\u0000'` })
  }
  const early = await under.record()
  await under.settle(first)
  others(300)
  under.passMs(1_200_000)
  const lost = await under.record()
  await under.settle(first)
  under.told.losses.length = 0
  under.log.lose(301)
  under.log.reconnect()
  others(300)
  await under.settle(first)
  expect(under.told.losses).toEqual(['behind'])
  expect(under.stored().slice(601)).toEqual([...early, ...lost])
})

test('a loss without a new connection, as by the restoration of a stream, is found by the next check', async () => {
  const [first] = await begin()
  const ids = await under.record(3)
  await under.settle(first)
  under.told.losses.length = 0
  under.log.lose(1)
  for (let n = 0; n < 5; n += 1) under.log.intrude(buildTestMessage(n))
  await under.settle(first)
  expect(under.told.losses).toEqual([])
  under.passMs(10_000)
  await under.settle(first)
  expect(under.told.losses).toEqual(['behind'])
  expect(under.stored().slice(6)).toEqual(ids)
})

test('others that appended exactly as much as was lost do not hide it from a new connection', async () => {
  const [first] = await begin()
  const ids = await under.record(3)
  await under.settle(first)
  under.told.losses.length = 0
  under.log.lose(1)
  under.log.reconnect()
  for (let n = 0; n < 2; n += 1) under.log.intrude(buildTestMessage(n))
  const [next] = await under.record()
  await under.settle(first)
  expect(under.told.losses).toEqual(['behind'])
  expect(under.stored().slice(3)).toEqual([...ids, next, next])
})

test('nor do they when the connection is lost between the check and the batch, also of a republication', async () => {
  for (const isRepublished of [false, true]) {
    const ids = [...(await begin().then(() => under.record(3)))]
    let isDue = false
    const first = under.build('relay-1', {
      ...under.log,
      append: (messages, after) => {
        if (isDue) {
          isDue = false
          under.log.lose(1)
          under.log.reconnect()
          for (let n = 0; n < 2; n += 1) under.log.intrude(buildTestMessage(n))
        }
        return under.log.append(messages, after)
      },
    })
    await under.settle(first)
    under.told.losses.length = 0
    const now = new Date(under.clock.now())
    if (isRepublished) {
      await beginRepublication(under.db, { after: new Date(now.getTime() - 1), now })
      under.passMs(10_000)
    } else ids.push(...(await under.record()))
    isDue = true
    await under.settle(first)
    expect(under.told.losses).toEqual(['behind'])
    expect(under.stored()).toEqual(expect.arrayContaining(ids))
    expect(await under.facts()).toMatchObject({ waiting: 0, republishAfter: null })
  }
})

test('an own message that age removed is no loss', async () => {
  const [first] = await begin()
  await under.record(2)
  await under.settle(first)
  under.told.losses.length = 0
  under.log.intrude(buildTestMessage(1))
  under.log.expire(2)
  under.passMs(20_000)
  await under.settle(first)
  under.passMs(20_000)
  await under.settle(first)
  expect(under.told.losses).toEqual([])
})

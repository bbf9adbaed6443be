import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildIntakeUnderTest } from '../../../test/harness/carriage/intake-under-test.ts'
import type { LogMessage } from '../log/log.ts'

type Step =
  | { do: 'append'; count: number }
  | { do: 'republish' }
  | { do: 'round'; intake: 0 | 1 }
  | { do: 'take over' }
  | { do: 'lose'; keep: number; others: number }
  | { do: 'pass'; ms: number }

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('append' as const), count: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ do: fc.constant('republish' as const) }),
    { weight: 3, arbitrary: fc.record({ do: fc.constant('round' as const), intake: fc.constantFrom<0 | 1>(0, 1) }) },
    fc.record({ do: fc.constant('take over' as const) }),
    fc.record({
      do: fc.constant('lose' as const),
      keep: fc.double({ min: 0, max: 1, noNaN: true }),
      others: fc.integer({ min: 0, max: 6 }),
    }),
    fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1_000, 6_000, 11_000, 900_000) }),
  ),
  { minLength: 5, maxLength: 25 },
)

let under: Awaited<ReturnType<typeof buildIntakeUnderTest>>
beforeAll(async () => {
  under = await buildIntakeUnderTest()
})
afterAll(() => under[Symbol.asyncDispose]())

async function begin() {
  under.log.replace()
  under.told.faults.length = 0
  await under.pool.query('truncate event_occurrence, event_queue cascade')
  await under.pool.query(
    `update log_intake set runner = null, lease_until = null, incarnation = null, sequence = 0,
    stored_at = null, fingerprint = null, read_since = $1, fault = null`,
    [new Date(under.clock.now())],
  )
  return [under.build('intake-1'), under.build('intake-2')] as const
}

test('a log that loses its end anywhere, while others append at any time, is taken in as a whole', async () => {
  const run = async (history: readonly Step[]) => {
    const intakes = await begin()
    const ids: string[] = []
    let lost: LogMessage[] = []
    const append = async (count: number) =>
      ids.push(...(await under.append(...Array.from({ length: count }, () => under.message()))))
    const republish = async () => {
      if (lost.length > 0) await under.append(...lost)
      lost = []
    }
    const takeOver = () => under.pool.query('update log_intake set runner = null')
    for (const step of history) {
      if (step.do === 'append') await append(step.count)
      else if (step.do === 'republish') await republish()
      else if (step.do === 'round') await intakes[step.intake].round()
      else if (step.do === 'take over') await takeOver()
      else if (step.do === 'pass') under.passMs(step.ms)
      else {
        const end = Math.round(step.keep * under.log.entries().length)
        lost.push(...under.log.entries().slice(end))
        under.log.lose(end)
        under.log.reconnect()
        // At the same instant too: neither time nor number tells the messages apart.
        if (step.others > 0) await append(step.others)
      }
    }
    await republish()
    for (const one of [...intakes, ...intakes]) {
      await takeOver()
      for (let check = 0; check < 2; check += 1) {
        under.passMs(11_000)
        await under.settle(one)
      }
    }
    expect((await under.events()).toSorted()).toEqual(ids.toSorted())
  }
  await fc.assert(fc.asyncProperty(steps, run), { numRuns: 60 })
}, 240_000)

test('others that appended exactly as much as was lost do not hide it, on a new connection at once', async () => {
  const [first] = await begin()
  const kept = await under.append(under.message(), under.message())
  const old = await under.append(under.message(), under.message())
  await under.settle(first)
  under.log.lose(2)
  under.log.reconnect()
  const others = await under.append(under.message(), under.message())
  await under.settle(first)
  expect(under.told.faults).toEqual(['replaced'])
  expect((await under.events()).toSorted()).toEqual([...kept, ...old, ...others].toSorted())
  // It goes on from there.
  const more = await under.append(under.message())
  await under.settle(first)
  expect(await under.events()).toContain(more[0])
  expect(under.told.faults).toHaveLength(1)
})

test('without a new connection it is found by the next message, or within 10 seconds', async () => {
  const [first] = await begin()
  await under.append(under.message(), under.message())
  await under.settle(first)
  under.log.lose(1)
  const [other] = await under.append(under.message())
  await under.settle(first)
  expect(await under.events()).not.toContain(other)
  under.passMs(10_000)
  await under.settle(first)
  expect(await under.events()).toContain(other)
  under.log.lose(1)
  const both = await under.append(under.message(), under.message())
  await under.settle(first)
  expect(await under.events()).toEqual(expect.arrayContaining(both))
  expect(under.told.faults).toEqual(['replaced', 'replaced'])
})

test('the end of a log that had nothing to take in is compared too', async () => {
  const [first] = await begin()
  await under.append(under.message(), under.message())
  under.passMs(1_000)
  await under.pool.query('update log_intake set read_since = $1', [new Date(under.clock.now())])
  await under.settle(first)
  expect(await under.facts()).toMatchObject({ sequence: 2, fingerprint: expect.stringMatching(/^[\w-]{43}$/) })
  under.log.lose(1)
  under.log.reconnect()
  const [other] = await under.append(under.message())
  await under.settle(first)
  expect(await under.events()).toContain(other)
})

test('ids of other publishers, however long, are compared and never kept', async () => {
  const [first] = await begin()
  const foreign = { ...under.message(), headers: {}, id: `\u0000'${'x'.repeat(2 ** 20)}` }
  await under.append(foreign)
  await under.settle(first)
  expect(await under.facts()).toMatchObject({ sequence: 1, fingerprint: expect.stringMatching(/^[\w-]{43}$/) })
  under.log.lose(0)
  under.log.reconnect()
  const [other] = await under.append(under.message())
  await under.settle(first)
  expect(await under.events()).toEqual([other])
  expect(under.told.faults).toEqual(['replaced'])
})

test('a position whose message age removed goes on', async () => {
  const [first] = await begin()
  await under.append(under.message(), under.message())
  await under.settle(first)
  under.log.expire(2)
  under.log.reconnect()
  const [next] = await under.append(under.message())
  await under.settle(first)
  expect(await under.events()).toContain(next)
  expect(under.told.faults).toEqual([])
})

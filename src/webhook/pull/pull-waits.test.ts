import pino from 'pino'
import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { WebhookId } from '../../base/id.ts'
import { buildPullWaits } from './pull-waits.ts'

const nameWebhook = (number: number) => `webhook-${number}` as WebhookId
const visitor = (number: number, { caller = 'ann', account = 'acme' as string | null } = {}) => ({
  ...{ webhook: nameWebhook(number), caller, account },
})

function openWaits() {
  const clock = buildManualClock()
  const looks: (readonly string[])[] = []
  const state = { ready: [] as WebhookId[], fault: undefined as Error | undefined, answer: Promise.resolve() }
  const waits = buildPullWaits({
    clock,
    logger: pino({ level: 'silent' }),
    listReady: async (webhooks) => {
      looks.push(webhooks)
      await state.answer
      if (state.fault) throw state.fault
      return state.ready.filter((id) => webhooks.includes(id))
    },
  })
  return { clock, looks, state, waits }
}

test('a notification wakes the pulls of its webhook alone, also one that comes before the wait', async () => {
  const { waits } = openWaits()
  const [own, other] = [waits.enter(visitor(1)), waits.enter(visitor(2))]
  waits.notify(nameWebhook(1))
  expect(await own.wait()).toBe(true)
  const woken: string[] = []
  void other.wait().then(() => woken.push('other'))
  const again = own.wait().then(() => woken.push('own'))
  waits.notify(nameWebhook(1))
  await again
  expect(woken).toEqual(['own'])
  waits.stop()
})

test('a pull that leaves takes none of the others along, and each notification wakes a wait once', async () => {
  const { clock, waits } = openWaits()
  const [left, stays] = [waits.enter(visitor(1)), waits.enter(visitor(1))]
  left.leave()
  waits.notify(nameWebhook(1))
  expect(await stays.wait()).toBe(true)
  const again = stays.wait()
  clock.advance(1_000)
  expect(await again).toBe(false)
  waits.stop()
})

test('one look a second serves all pulls, says for which there is something, and ends with the last of them', async () => {
  const { clock, looks, state, waits } = openWaits()
  const places = [waits.enter(visitor(1)), waits.enter(visitor(1)), waits.enter(visitor(2))]
  const waited = Promise.all(places.map((place) => place.wait()))
  state.ready = [nameWebhook(1)]
  clock.advance(999)
  expect(looks).toEqual([])
  clock.advance(1)
  expect(await waited).toEqual([true, true, false])
  expect(looks).toEqual([[nameWebhook(1), nameWebhook(2)]])
  for (const place of places) place.leave()
  expect(waits.count()).toBe(0)
  for (let second = 0; second < 3; second += 1) {
    clock.advance(1_000)
    await Promise.resolve()
  }
  expect(looks).toHaveLength(1)
  // The next pull starts it again.
  const next = waits.enter(visitor(1)).wait()
  clock.advance(1_000)
  expect(await next).toBe(true)
  waits.stop()
})

test('a failed look wakes the pulls, which check their time, and is made again', async () => {
  const { clock, looks, state, waits } = openWaits()
  const place = waits.enter(visitor(1))
  state.fault = new Error('no database')
  const first = place.wait()
  clock.advance(1_000)
  expect(await first).toBe(false)
  state.fault = undefined
  state.ready = [nameWebhook(1)]
  const second = place.wait()
  clock.advance(1_000)
  expect(await second).toBe(true)
  expect(looks).toHaveLength(2)
  waits.stop()
})

test('missed notifications wake all pulls', async () => {
  const { waits } = openWaits()
  const waited = [waits.enter(visitor(1)), waits.enter(visitor(2))].map((place) => place.wait())
  waits.notify()
  expect(await Promise.all(waited)).toEqual([true, true])
  waits.stop()
})

test('an end and a stop end the wait, and later waits at once, without a look at the database', async () => {
  const { looks, waits } = openWaits()
  const [ended, stopped] = [waits.enter(visitor(1)), waits.enter(visitor(2))]
  const first = ended.wait()
  ended.end()
  await first
  expect([ended.isOver(), stopped.isOver()]).toEqual([true, false])
  const second = stopped.wait()
  waits.stop()
  await second
  expect(stopped.isOver()).toBe(true)
  const late = waits.enter(visitor(3))
  await late.wait()
  expect(late.isOver()).toBe(true)
  await new Promise(setImmediate)
  expect(looks).toEqual([])
})

test('a stop ends the waits though a look at the database has no answer', async () => {
  const { clock, looks, state, waits } = openWaits()
  state.answer = new Promise(() => {})
  const waited = waits.enter(visitor(1)).wait()
  clock.advance(1_000)
  await new Promise(setImmediate)
  expect(looks).toHaveLength(1)
  waits.stop()
  expect(await waited).toBe(false)
})

const LIMITS = [
  ['webhook', 10, (index: number) => visitor(1, { caller: `user-${index}`, account: null })],
  ['caller', 20, (index: number) => visitor(index, { account: null })],
  ['account', 50, (index: number) => visitor(index, { caller: `user-${index}` })],
] as const

test.each(LIMITS)(
  '%s: so many pulls wait, one more is a 429, and a place that was left is free',
  (kind, most, build) => {
    const { waits } = openWaits()
    const places = Array.from({ length: most }, (_, index) => waits.enter(build(index)))
    expect(() => waits.enter(build(most))).toThrow(
      expect.objectContaining({
        code: 'rate_limited',
        detail: expect.stringContaining(`${most} pulls of this ${kind}`),
      }),
    )
    expect(waits.count()).toBe(most)
    places[0]?.leave()
    places[0]?.leave()
    waits.enter(build(0))
    expect(() => waits.enter(build(most))).toThrow()
    waits.stop()
  },
)

test('process: 500 pulls wait, one more is a 503', () => {
  const { waits } = openWaits()
  const enter = (index: number) => waits.enter(visitor(index, { caller: `user-${index}`, account: `account-${index}` }))
  for (let index = 0; index < 500; index += 1) enter(index)
  expect(() => enter(500)).toThrow(expect.objectContaining({ code: 'overloaded' }))
  waits.stop()
})

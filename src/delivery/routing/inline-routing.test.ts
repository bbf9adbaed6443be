import { describe, expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildMutex } from '../../base/semaphore.ts'
import { takeInlineRouting } from './inline-routing.ts'
import { buildRoutedPolicies } from './routed-policies.ts'

const LATE = new Error('the rows were not accepted')

/** Two dispatchers, of which the first has `slots`; calls to them are recorded. */
function openDispatchers(slots = 2) {
  const clock = buildManualClock()
  const state = { slots, told: [] as string[], parts: [] as number[], failsToAccept: false }
  const dispatcherOf = (name: string) => ({
    ...{ mutex: buildMutex(), inFlight: () => 0, mayLeak: () => false, drain: async () => 0 },
    ...{ stop: async () => {}, run: async () => {} },
    policy: {
      name,
      buildRouting: (room: { fastSlots: number }) => {
        state.parts.push(room.fastSlots)
        return { matched: name, written: { name, text: '', values: [] } }
      },
    },
    measureRoom: () => ({ fastSlots: name === 'first' ? state.slots : 7 }),
    hasRoom: () => name === 'first',
    notify: () => {
      state.told.push(`${name} notified`)
    },
    accept: async (rows: readonly unknown[]) => {
      if (state.failsToAccept) throw LATE
      state.told.push(`${name} accepted ${rows.join(' ')}`)
    },
    expectLeak: () => {
      state.told.push(`${name} may leak`)
    },
  })
  const dispatchers = [dispatcherOf('first'), dispatcherOf('second')] as const
  const policies = buildRoutedPolicies(dispatchers as never, clock)
  const taken = () => dispatchers.map(({ mutex }) => mutex.taken())
  return { clock, state, dispatchers, policies, taken, take: () => takeInlineRouting(policies, clock.sleep) }
}

/** Lets everything run that waits for no timer. */
const settle = () => new Promise(setImmediate)

describe('the right to route in a recording statement', () => {
  test('has the part of each policy with its room, and holds all turns until its rows are accepted', async () => {
    const t = openDispatchers()
    const right = (await t.take())!
    expect(right.policies.map(({ name, part }) => [name, part.matched])).toEqual([
      ['first', 'first'],
      ['second', 'second'],
    ])
    expect([t.state.parts, t.taken()]).toEqual([
      [2, 7],
      [1, 1],
    ])
    const at = (ms: number) => new Date(t.clock.now() + ms)
    await right.accept([
      { work: ['a', 'b'], opened: 2, nextDueAt: at(0) },
      { work: ['c'], opened: 1, nextDueAt: at(1) },
    ])
    expect(t.state.told).toEqual(['first accepted a b', 'first notified', 'second accepted c'])
    expect(t.taken()).toEqual([0, 0])
  })

  test('is not waited for without a free slot', async () => {
    const t = openDispatchers(0)
    expect(await t.take()).toBeUndefined()
    expect([t.taken(), t.state.parts]).toEqual([[0, 0], []])
  })

  test('is given up after 5 ms while another statement has a turn, and frees those that it took', async () => {
    const t = openDispatchers()
    t.dispatchers[1].mutex.tryTake()
    let right: unknown = 'waits'
    const taking = t.take().then((value) => {
      right = value
    })
    await settle()
    t.clock.advance(4)
    await settle()
    expect([right, t.taken()]).toEqual(['waits', [1, 1]])
    t.clock.advance(1)
    await taking
    expect([right, t.taken()]).toEqual([undefined, [0, 1]])
  })

  test('is not taken when the slots were taken while it waited', async () => {
    const t = openDispatchers()
    t.dispatchers[0].mutex.tryTake()
    const taking = t.take()
    await settle()
    t.state.slots = 0
    t.dispatchers[0].mutex.release()
    expect(await taking).toBeUndefined()
    expect([t.taken(), t.state.parts]).toEqual([[0, 0], []])
  })

  test('frees the turns of a statement that failed, which may have claimed', async () => {
    const t = openDispatchers()
    ;(await t.take())!.fail()
    expect([t.state.told, t.taken()]).toEqual([
      ['first may leak', 'second may leak'],
      [0, 0],
    ])
  })

  test('frees the turns of rows that were not accepted, which are searched', async () => {
    const t = openDispatchers()
    const right = (await t.take())!
    t.state.failsToAccept = true
    await expect(right.accept([{ work: [], opened: 0, nextDueAt: null }])).rejects.toBe(LATE)
    expect([t.state.told, t.taken()]).toEqual([
      ['first may leak', 'second may leak'],
      [0, 0],
    ])
  })
})

describe('the turns of all dispatchers', () => {
  test('are waited for without a limit, and freed once', async () => {
    const t = openDispatchers()
    t.dispatchers[1].mutex.tryTake()
    let release: (() => void) | undefined
    const taking = t.policies.takeTurns().then((value) => {
      release = value
    })
    await settle()
    expect([release, t.taken()]).toEqual([undefined, [1, 1]])
    t.dispatchers[1].mutex.release()
    await taking
    release!()
    release!()
    expect(t.taken()).toEqual([0, 0])
  })

  test('follow the first policy in what room there is', () => {
    const t = openDispatchers(3)
    expect([t.policies.countSlots(), t.policies.hasRoom()]).toEqual([3, true])
  })
})

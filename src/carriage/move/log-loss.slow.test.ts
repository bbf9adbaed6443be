import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { buildTestMessage } from '../../../test/harness/carriage/log-conformance.ts'
import { buildMemoryLog } from '../../../test/harness/carriage/memory-log.ts'
import { addAccount } from '../../../test/harness/carriage/moved-account.ts'
import { addGlobalWebhook, type MovedLog, openMovedLog } from '../../../test/harness/carriage/moved-log.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId } from '../../base/id.ts'
import { askBack, beginMove } from './move.store.ts'
import type { Place } from './move-plan.ts'

const clock = buildManualClock()
const log = buildMemoryLog(() => new Date(clock.now()))
let under: MovedLog

beforeAll(async () => {
  under = await openMovedLog(async () => log, clock)
  await addAccount(under.ground)
  await addGlobalWebhook(under.ground, 'order.create')
})
afterAll(() => under[Symbol.asyncDispose]())
beforeEach(() => {
  under.told.losses.length = 0
})

/** Histories: MOVE_LOG_HISTORIES asks for more. */
const HISTORIES = Number(process.env.MOVE_LOG_HISTORIES ?? 50)

const begin = (account: AccountId, target: Place) =>
  beginMove(under.ground.at(null).db, { account, target, drainSeconds: 600 })

/** An account at a place, with nothing under way. */
async function place(source: Place): Promise<AccountId> {
  const account = await addAccount(under.ground)
  if (source !== null) {
    await begin(account, source)
    expect(await under.run(account)).toMatchObject({ kind: 'moved' })
    await under.settle()
  }
  return account
}

/** The log ends at a share of its messages, and others fill its end again; or it is another one. */
function lose({ keep, refill }: { keep: number | 'none'; refill: number }): void {
  if (keep === 'none') log.replace()
  else log.lose(Math.round(log.entries().length * keep))
  for (let n = 0; n < refill; n += 1) log.intrude(buildTestMessage(n))
}

const ROUTES: readonly [Place, Place][] = [
  [null, 'c1'],
  ['c1', 'c2'],
  ['c1', null],
]

const histories = fc.record({
  route: fc.constantFrom(...ROUTES),
  /** Events of the account: the rounds after each. */
  events: fc.array(fc.integer({ max: 2, min: 0 }), { minLength: 1, maxLength: 5 }),
  isTold: fc.boolean(),
  /** Before which effect the log is lost; beyond the last one after the move. */
  at: fc.integer({ min: 0, max: 30 }),
  loss: fc.record({
    keep: fc.oneof(fc.constant('none' as const), fc.double({ min: 0.3, max: 1, noNaN: true })),
    refill: fc.integer({ min: 0, max: 12 }),
  }),
  /** Rounds and ms before each effect. */
  pace: fc.record({ rounds: fc.integer({ min: 0, max: 1 }), ms: fc.constantFrom(0, 2_000, 11_000) }),
  goesBack: fc.boolean(),
})

type History = typeof histories extends fc.Arbitrary<infer Value> ? Value : never

test('a log that is lost before any effect of a move has every event in the end, and so do the databases', async () => {
  const play = async ({ route, events, isTold, at, loss, pace, goesBack }: History) => {
    const [source, target] = route
    const account = await place(source)
    const own: string[] = []
    const told: string[] = []
    for (const rounds of events) {
      own.push(await under.record(source, account))
      if (isTold && source !== null) told.push(await under.record(null, account))
      for (let n = 0; n < rounds; n += 1) await under.round()
    }
    await begin(account, target)
    let left = at
    const beforeEffect = async () => {
      for (let n = 0; n < pace.rounds; n += 1) await under.round()
      under.passMs(pace.ms)
      if (left === 0) lose(loss)
      if (left === 0 && goesBack) await askBack(under.ground.at(null).db, { account, reason: 'test' })
      left -= 1
    }
    const sleep = async () => {
      under.passMs(2_000)
      await under.round()
    }
    const end = await under.run(account, { beforeEffect, sleep })
    if (left >= 0) lose(loss)
    await under.settle()
    const stored = new Set(log.entries().map(({ id }) => id))
    const isLost = (id: string) => !stored.has(id)
    expect([...own, ...told].filter(isLost), 'in the log').toEqual([])
    const site = end.kind === 'moved' ? target : source
    const there = new Set(await under.events(site, account))
    expect(
      [...own, ...told].filter((id) => !there.has(id)),
      'in its database',
    ).toEqual([])
    if (source !== null)
      expect(
        own.filter((id) => !under.routed.has(id)),
        'to global webhooks',
      ).toEqual([])
  }
  await fc.assert(fc.asyncProperty(histories, play), { numRuns: HISTORIES, endOnFailure: true })
}, 600_000)

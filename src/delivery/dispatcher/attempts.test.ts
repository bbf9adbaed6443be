import { pino } from 'pino'
import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import type { Claim, Work } from '../policy.ts'
import { buildAttempts } from './attempts.ts'
import { buildLanes } from './lanes.ts'

/** Attempts that end at once; `refuse` has the database refuse their results, until `gate` it does not answer. */
function open(refuse: boolean, { gate, fault }: { gate?: Promise<void>; fault?: OwnFault } = {}) {
  const clock = buildManualClock()
  const seen = { refused: 0, ended: 0 }
  const database = { refuse }
  const attempts = buildAttempts<Work, Claim, undefined>({
    ...{ clock, lanes: buildLanes(4), logger: pino({ level: 'silent' }) },
    policy: {
      ...{ name: 'test', concurrency: 4, perGroup: 4, onSettled: () => {}, listHeldBack: () => [] },
      attempt: async (work: Work) => {
        if (fault) throw fault
        return work
      },
      queue: {
        release: () => gate,
        settle: async () => {
          await gate
          if (database.refuse) throw Object.assign(new Error('no text'), { code: '22021' })
        },
      },
    },
    onRefused: () => {
      seen.refused += 1
    },
    onEnded: () => {
      seen.ended += 1
    },
  } as unknown as Parameters<typeof buildAttempts<Work, Claim, undefined>>[0])
  return { clock, seen, database, attempts }
}
const WORK = { id: 'one', group: 'a', fence: 1 } as Work

test('a claim is held until its result is recorded', async () => {
  const { attempts, seen } = open(false)
  attempts.start([WORK])
  expect([attempts.heldClaims().size, attempts.inFlight()]).toEqual([1, 1])
  await attempts.allRecorded()
  expect([attempts.heldClaims().size, attempts.inFlight(), seen]).toEqual([0, 0, { refused: 0, ended: 1 }])
})

test('a claim whose result the database refuses is held for 20 s more, in which its attempt may be repeated', async () => {
  const { clock, attempts, seen, database } = open(true)
  attempts.start([WORK])
  await attempts.allRecorded()
  expect([attempts.heldClaims().size, seen]).toEqual([1, { refused: 1, ended: 1 }])
  clock.advance(19_999)
  await Promise.resolve()
  expect(attempts.heldClaims().size).toBe(1)
  clock.advance(1)
  await expect.poll(() => attempts.heldClaims().size).toBe(0)
  database.refuse = false
  attempts.start([WORK])
  await attempts.allRecorded()
  expect(attempts.heldClaims().size).toBe(0)
})

test.each([
  ['its result is recorded', undefined],
  ['its claim is given back', new OwnFault('EMFILE')],
])('a stop, and who asks for all, wait for an attempt until %s', async (_name, fault) => {
  const gate = Promise.withResolvers<void>()
  const { attempts } = open(false, { gate: gate.promise, ...(fault && { fault }) })
  attempts.start([WORK])
  const over: string[] = []
  const both = [attempts.allRecorded().then(() => over.push('all')), attempts.stop().then(() => over.push('stop'))]
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate)
  expect(over).toEqual([])
  gate.resolve()
  await Promise.all(both)
  expect(attempts.heldClaims().size).toBe(0)
})

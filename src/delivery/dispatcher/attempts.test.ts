import { pino } from 'pino'
import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { Claim, Work } from '../policy.ts'
import { buildAttempts } from './attempts.ts'
import { buildLanes } from './lanes.ts'

/** Attempts that end at once; `refuse` has the database refuse their results. */
function open(refuse: boolean) {
  const clock = buildManualClock()
  const seen = { refused: 0, ended: 0 }
  const attempts = buildAttempts<Work, Claim, undefined>({
    ...{ clock, lanes: buildLanes(4), logger: pino({ level: 'silent' }) },
    policy: {
      ...{ name: 'test', concurrency: 4, perGroup: 4, onSettled: () => {}, listHeldBack: () => [] },
      attempt: async (work: Work) => work,
      queue: {
        settle: async () => {
          if (refuse) throw Object.assign(new Error('no text'), { code: '22021' })
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
  return { clock, seen, attempts }
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
  const { clock, attempts, seen } = open(true)
  attempts.start([WORK])
  await attempts.allRecorded()
  expect([attempts.heldClaims().size, seen]).toEqual([1, { refused: 1, ended: 1 }])
  clock.advance(19_999)
  await Promise.resolve()
  expect(attempts.heldClaims().size).toBe(1)
  clock.advance(1)
  await expect.poll(() => attempts.heldClaims().size).toBe(0)
})

import pino from 'pino'
import { expect, test } from 'vitest'
import { rest as settleTurns } from '../../../test/harness/delivery/dispatcher-in-memory.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { Claim } from '../policy.ts'
import { buildAcknowledger } from './acknowledger.ts'

const refused = () => Object.assign(new Error('no text'), { code: '22021' })

/** An acknowledger over a queue in memory. `settle` may fail, or return the ids that it holds back. */
function openAcknowledger(settle: (ids: readonly string[]) => readonly string[] = () => []) {
  const clock = buildManualClock()
  const statements: string[][] = []
  const done: string[] = []
  const policy = {
    queue: {
      settle: async (ended: readonly Claim[]) => {
        const ids = ended.map(({ id }) => id)
        statements.push(ids)
        return ended.filter(({ id }) => settle(ids).includes(id))
      },
    },
    onSettled: () => {},
    listHeldBack: (heldBack: readonly Claim[]) => heldBack,
  }
  const logger = pino({ level: 'silent' })
  const acknowledger = buildAcknowledger<Claim, readonly Claim[]>({ policy, clock, logger }, (ended) =>
    done.push(...ended.map(({ id }) => id)),
  )
  const add = (...ids: string[]) => {
    for (const id of ids) acknowledger.add({ id, fence: 1 }, `group of ${id}`)
  }
  return { clock, statements, done, acknowledger, add }
}

test('results are collected for 10 ms, also after a question whether all is recorded, and a full batch waits for no others', async () => {
  const t = openAcknowledger()
  expect(t.acknowledger.settled()).toBeUndefined()
  t.add(...Array.from({ length: 1_000 }, (_, n) => `result ${n}`))
  t.clock.advance(9)
  await settleTurns()
  expect(t.statements).toEqual([])
  t.clock.advance(1)
  await settleTurns()
  expect(t.statements.map((ids) => ids.length)).toEqual([500, 500])
})

test('a result that is held back beside one that the database never takes is recorded later', async () => {
  let isHeld = true
  const t = openAcknowledger((ids) => {
    if (ids.includes('bad')) throw refused()
    return isHeld ? ['held'] : []
  })
  t.add('bad', 'held')
  t.clock.advance(10)
  await settleTurns()
  expect(t.done).toEqual(['bad'])
  isHeld = false
  for (let turn = 0; turn < 3; turn += 1) {
    t.clock.advance(250)
    await settleTurns()
  }
  expect(t.done).toEqual(['bad', 'held'])
  expect(t.acknowledger.settled()).toBeUndefined()
})

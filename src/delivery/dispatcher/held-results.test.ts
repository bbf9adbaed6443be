import { pino } from 'pino'
import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import type { Claim } from '../policy.ts'
import { buildHeldResults, RECORD_RETRY_MS, type Result } from './held-results.ts'

const resultOf = (group: string, id: string): Result<Claim> => ({ group, ended: { id, fence: 1 } as Claim })
const idsOf = (results: readonly Result<Claim>[]) => results.map(({ ended }) => ended.id)

/** Records all, but throws these errors before. */
function open(...errors: Error[]) {
  const clock = buildManualClock()
  const seen = { recorded: [] as string[][], freed: [] as string[], recovered: [] as string[] }
  const held = buildHeldResults<Claim>({
    ...{ clock, logger: pino({ level: 'silent' }) },
    record: async (batch) => {
      seen.recorded.push(idsOf(batch))
      const error = errors.shift()
      if (error) throw error
      return []
    },
    recover: async (batch) => {
      seen.recovered.push(...idsOf(batch))
    },
    onFreed: (results) => seen.freed.push(...idsOf(results)),
  })
  const settle = async () => {
    await waitFor('the results', async () => {
      clock.advance(RECORD_RETRY_MS)
      await Promise.resolve()
      return held.underWay().size === 0
    })
  }
  return { held, seen, settle }
}

test('later results of a group follow those that are blocked, also when the group is set apart again', async () => {
  const { held, seen, settle } = open()
  const [one, two, three, four] = ['1', '2', '3', '4'].map((id) => resultOf('a', id)) as [
    Result<Claim>,
    Result<Claim>,
    Result<Claim>,
    Result<Claim>,
  ]
  expect(held.take(one)).toBe(false)
  const statement = Promise.withResolvers<Result<Claim>[]>()
  held.hold([one], statement.promise)
  expect([held.take(two), held.take(resultOf('b', '9'))]).toEqual([true, false])
  held.hold([three], Promise.resolve([three]))
  expect(held.take(four)).toBe(true)
  statement.resolve([one])
  await settle()
  const done = [...seen.recorded.flat(), ...seen.freed]
  expect(done.toSorted()).toEqual(['1', '2', '3', '4'])
  expect(held.take(resultOf('a', '5'))).toBe(false)
})

test('a group whose statement recorded all rejoins the others with what came meanwhile', async () => {
  const { held, seen, settle } = open()
  held.hold([resultOf('a', '1')], Promise.resolve([]))
  held.take(resultOf('a', '2'))
  await settle()
  expect(seen).toEqual({ recorded: [], freed: ['2'], recovered: [] })
})

test('what the database refuses is handed on, and its group rejoins the others', async () => {
  const { held, seen, settle } = open()
  held.hold([resultOf('a', '1')], Promise.reject(new Error('refused')))
  held.take(resultOf('a', '2'))
  await settle()
  expect(seen).toEqual({ recorded: [], freed: ['2'], recovered: ['1'] })
})

test('results that wait for a lock once more are tried again, and what the database refuses then is handed on', async () => {
  const { held, seen, settle } = open(Object.assign(new Error('lock timeout'), { code: '55P03' }), new Error('refused'))
  held.hold([resultOf('a', '1')], Promise.resolve([resultOf('a', '1')]))
  held.take(resultOf('a', '2'))
  await settle()
  expect(seen).toEqual({
    recorded: [
      ['1', '2'],
      ['1', '2'],
    ],
    freed: [],
    recovered: ['1', '2'],
  })
})

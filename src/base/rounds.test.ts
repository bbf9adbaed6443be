import { expect, test } from 'vitest'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import { runRounds } from './rounds.ts'

const PERIOD_MS = 1_000

test('a round that fails is reported, the next comes after the pause, and a stop ends the pause', async () => {
  const clock = buildManualClock()
  const stopping = new AbortController()
  const errors: unknown[] = []
  let rounds = 0
  const work = async () => {
    rounds += 1
    if (rounds === 1) throw new Error('no database')
  }
  const ended = runRounds({ clock, periodMs: PERIOD_MS, stop: stopping.signal, work, onError: (e) => errors.push(e) })
  const rest = async () => {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
  }
  await rest()
  expect([rounds, errors]).toEqual([1, [new Error('no database')]])
  clock.advance(PERIOD_MS - 1)
  await rest()
  expect(rounds).toBe(1)
  clock.advance(1)
  await rest()
  expect(rounds).toBe(2)
  stopping.abort()
  await ended
  expect([rounds, errors.length]).toEqual([2, 1])
})

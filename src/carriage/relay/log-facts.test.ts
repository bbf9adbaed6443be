import { expect, test } from 'vitest'
import type { EventId } from '../../base/id.ts'
import { decideEventLogFacts, decideEventLogHealth } from './log-facts.ts'
import { decideLoss, decideRepublishFrom } from './loss.ts'
import type { OutboxFacts } from './outbox.store.ts'

const NOW = new Date('2026-09-11T12:00:00Z')
const ago = (ms: number) => new Date(NOW.getTime() - ms)
const WELL: OutboxFacts = {
  ...{ isOpen: true, waiting: 0, oldestAt: null, relay: 'one', incarnation: 'a', sequence: 5, appendedAt: NOW },
  ...{ republishAfter: null, republishUntil: null, loss: null, lossAt: null },
}
const judge = (change: Partial<OutboxFacts>) => {
  const facts = decideEventLogFacts({ ...WELL, ...change }, NOW)
  return [decideEventLogHealth(facts), facts.remedy]
}

test('the log is degraded from 60 seconds of waiting on, while events are published again, and while it is off', () => {
  expect(judge({})).toEqual(['operational', null])
  expect(judge({ waiting: 1, oldestAt: ago(59_999) })).toEqual(['operational', null])
  expect(judge({ waiting: 1, oldestAt: ago(60_000) })).toEqual(['degraded', expect.stringMatching(/does not answer/)])
  expect(judge({ waiting: 1, oldestAt: ago(60_000), relay: null })).toEqual([
    'degraded',
    expect.stringMatching(/No process appends/),
  ])
  expect(judge({ republishAfter: NOW })).toEqual(['degraded', expect.stringMatching(/published again/)])
  expect(judge({ isOpen: false })).toEqual(['degraded', expect.stringMatching(/No event reaches/)])
  // A loss that is repaired is shown, and nothing is to be done.
  expect(judge({ loss: 'behind', lossAt: NOW })).toEqual(['operational', null])
  // An event of a process whose clock is ahead.
  expect(decideEventLogFacts({ ...WELL, oldestAt: ago(-5_000) }, NOW).oldest_waiting_s).toBe(0)
})

test('a log of another incarnation is replaced, one that ends earlier is behind, and a longer one is neither', () => {
  const known = { incarnation: 'a', sequence: 5, ownSequence: null, ownEvent: null }
  const judgeLoss = (incarnation: string, sequence: number) =>
    decideLoss(known, { incarnation, sequence, firstSequence: 1 }, undefined)
  expect(judgeLoss('a', 5)).toBeUndefined()
  expect(judgeLoss('a', 6)).toBeUndefined()
  expect(judgeLoss('a', 4)).toEqual({ loss: 'behind', isCertain: false })
  expect(judgeLoss('b', 9)).toEqual({ loss: 'replaced', isCertain: true })
  const state = { incarnation: 'b', sequence: 9, firstSequence: 1 }
  expect(decideLoss({ ...known, incarnation: null, sequence: 0 }, state, undefined)).toBeUndefined()
})

test('another message at the place of the own one is a loss, none is one that may pass, and a removed one is neither', () => {
  const known = { incarnation: 'a', sequence: 5, ownSequence: 4, ownEvent: 'x' as EventId }
  const judgeOwn = (id: string | undefined, { sequence = 9, firstSequence = 1, incarnation = 'a' } = {}) =>
    decideLoss(known, { incarnation, sequence, firstSequence }, id === undefined ? undefined : { id })
  expect(judgeOwn('x')).toBeUndefined()
  expect(judgeOwn('x', { sequence: 4 })).toEqual({ loss: 'behind', isCertain: false })
  expect(judgeOwn('y')).toEqual({ loss: 'behind', isCertain: true })
  expect(judgeOwn('y', { sequence: 4 })).toEqual({ loss: 'behind', isCertain: true })
  expect(judgeOwn('y', { incarnation: 'b' })).toEqual({ loss: 'replaced', isCertain: true })
  expect(judgeOwn(undefined)).toEqual({ loss: 'behind', isCertain: false })
  expect(judgeOwn(undefined, { firstSequence: 4 })).toEqual({ loss: 'behind', isCertain: false })
  expect(judgeOwn(undefined, { firstSequence: 5 })).toBeUndefined()
  expect(judgeOwn('y', { firstSequence: 5 })).toBeUndefined()
})

test('events are published again from five minutes before the last own one that is stored, and not beyond the age of the log', () => {
  const from = (loss: 'replaced' | 'behind', lastMs: number | undefined) =>
    decideRepublishFrom(loss, {
      lastAt: lastMs === undefined ? undefined : ago(lastMs),
      ...{ now: NOW, maxAgeMs: 3_600_000 },
    })
  expect(from('behind', 60_000)).toEqual(ago(360_000))
  expect(from('behind', 3_500_000)).toEqual(ago(3_600_000))
  expect(from('behind', undefined)).toEqual(ago(3_600_000))
  expect(from('replaced', 60_000)).toEqual(ago(3_600_000))
})

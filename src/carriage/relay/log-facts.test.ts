import { expect, test } from 'vitest'
import type { EventId } from '../../base/id.ts'
import { decideAdopted } from './adopted.store.ts'
import { decideEventLogFacts, decideEventLogHealth } from './log-facts.ts'
import { decideLoss, decideRepublishFrom } from './loss.ts'
import type { OutboxFacts } from './outbox-facts.store.ts'

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

const NONE = { adoptedIncarnation: null, adoptedSequence: null, adoptedEvent: null }
const NO_ENTRIES = { own: undefined, adopted: undefined }

test('a log of another incarnation is replaced, one that ends earlier is behind, and a longer one is neither', () => {
  const known = { incarnation: 'a', sequence: 5, ownSequence: null, ownEvent: null, ...NONE }
  const judgeLoss = (incarnation: string, sequence: number) =>
    decideLoss(known, { incarnation, sequence, firstSequence: 1 }, NO_ENTRIES)
  expect(judgeLoss('a', 5)).toBeUndefined()
  expect(judgeLoss('a', 6)).toBeUndefined()
  expect(judgeLoss('a', 4)).toEqual({ loss: 'behind', isCertain: false, isAdopted: false })
  expect(judgeLoss('b', 9)).toEqual({ loss: 'replaced', isCertain: true, isAdopted: false })
  const state = { incarnation: 'b', sequence: 9, firstSequence: 1 }
  expect(decideLoss({ ...known, incarnation: null, sequence: 0 }, state, NO_ENTRIES)).toBeUndefined()
})

test('another message at the place of the own one is a loss, none is one that may pass, and a removed one is neither', () => {
  const known = { incarnation: 'a', sequence: 5, ownSequence: 4, ownEvent: 'x' as EventId, ...NONE }
  const judgeOwn = (id: string | undefined, { sequence = 9, firstSequence = 1, incarnation = 'a' } = {}) =>
    decideLoss(
      known,
      { incarnation, sequence, firstSequence },
      { own: id === undefined ? undefined : { id }, adopted: undefined },
    )
  expect(judgeOwn('x')).toBeUndefined()
  expect(judgeOwn('x', { sequence: 4 })).toEqual({ loss: 'behind', isCertain: false, isAdopted: false })
  expect(judgeOwn('y')).toEqual({ loss: 'behind', isCertain: true, isAdopted: false })
  expect(judgeOwn('y', { sequence: 4 })).toEqual({ loss: 'behind', isCertain: true, isAdopted: false })
  expect(judgeOwn('y', { incarnation: 'b' })).toEqual({ loss: 'replaced', isCertain: true, isAdopted: false })
  expect(judgeOwn(undefined)).toEqual({ loss: 'behind', isCertain: false, isAdopted: false })
  expect(judgeOwn(undefined, { firstSequence: 4 })).toEqual({ loss: 'behind', isCertain: false, isAdopted: false })
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

test('what a move brought is compared at its own place, and its loss says so', () => {
  const own = { incarnation: 'a', sequence: 9, ownSequence: 9, ownEvent: 'o' as EventId }
  const known = { ...own, adoptedIncarnation: 'a', adoptedSequence: 7, adoptedEvent: 'x' as EventId }
  const state = { incarnation: 'a', sequence: 9, firstSequence: 1 }
  const judge = (id: string | undefined, change: object = {}) =>
    decideLoss({ ...known, ...change }, state, { own: { id: 'o' }, adopted: id === undefined ? undefined : { id } })
  expect(judge('x')).toBeUndefined()
  expect(judge('y')).toEqual({ loss: 'behind', isCertain: true, isAdopted: true })
  expect(judge(undefined)).toEqual({ loss: 'behind', isCertain: false, isAdopted: true })
  expect(judge('x', { adoptedIncarnation: 'b' })).toEqual({ loss: 'replaced', isCertain: true, isAdopted: true })
  // A cell that has confirmed nothing yet.
  expect(judge('y', { incarnation: null })).toEqual({ loss: 'behind', isCertain: true, isAdopted: true })
  // The worse of two.
  const both = decideLoss(known, { ...state, sequence: 6 }, { own: { id: 'p' }, adopted: undefined })
  expect(both).toEqual({ loss: 'behind', isCertain: true, isAdopted: true })
})

test('a move gives on what its source appended, and what that was given, as far as both are of one log', () => {
  const end = {
    incarnation: 'a',
    sequence: 9,
    ownSequence: 5,
    ownEvent: 'o' as EventId,
    isRepublishing: false,
    ...NONE,
  }
  const given = { adoptedIncarnation: 'a', adoptedSequence: 7, adoptedEvent: 'x' as EventId }
  const unknown = { adoptedIncarnation: '-', adoptedSequence: null, adoptedEvent: null }
  expect(decideAdopted(end)).toEqual({ adoptedIncarnation: 'a', adoptedSequence: 5, adoptedEvent: 'o' })
  expect(decideAdopted({ ...end, ...given })).toMatchObject(given)
  expect(decideAdopted({ ...end, ...given, ownSequence: 8 })).toMatchObject({ adoptedSequence: 8, adoptedEvent: 'o' })
  expect(decideAdopted({ ...end, ownSequence: null, ownEvent: null })).toBeUndefined()
  expect(decideAdopted({ ...end, ...given, ownSequence: null, ownEvent: null })).toMatchObject(given)
  expect(decideAdopted({ ...end, ...given, incarnation: 'b' })).toEqual(unknown)
  expect(decideAdopted({ ...end, isRepublishing: true })).toEqual(unknown)
})

import { expect, test } from 'vitest'
import { decideEventLogFacts, decideEventLogHealth } from './log-facts.ts'
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

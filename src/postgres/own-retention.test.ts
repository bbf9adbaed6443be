import { expect, test } from 'vitest'
import type { AccountId } from '../base/id.ts'
import { advanceWalk, decideOwnEdges, type LedgerWalk, START } from './own-retention.ts'

const DAY_MS = 24 * 3_600_000
const now = Date.UTC(2026, 8, 11)
const at = (id: string) => ({ at: new Date(now), id })
const BEGUN: LedgerWalk = {
  ...{ longer: 'a', mark: START, again: START, round: undefined, isAtMark: true, pages: 0, goesOn: true },
}
const full = (id: string) => ({ counts: [0], seen: 10, last: at(id) })
const part = (id: string) => ({ counts: [0], seen: 9, last: at(id) })

test('an edge is by the days of the account; a deleted one is kept no longer than the setting', () => {
  const of = (account: string, days: number, isDeleted = false) => ({ account: account as AccountId, days, isDeleted })
  const { own, longer } = decideOwnEdges([of('a', 1), of('b', 30), of('c', 31), of('d', 31, true), of('e', 1, true)], {
    now,
    serviceDays: 30,
  })
  expect(own.map(({ before }) => (now - before.getTime()) / DAY_MS)).toEqual([1, 30, 31, 30, 1])
  expect(longer).toEqual(['c'])
})

test('a walk goes on from its mark until a page is not full, then looks again from the start', () => {
  const first = advanceWalk(BEGUN, full('1'), 10)
  expect(first).toMatchObject({ mark: at('1'), again: START, isAtMark: true, goesOn: true })
  const second = advanceWalk(first, part('2'), 10)
  expect(second).toMatchObject({ mark: at('2'), again: START, isAtMark: false, goesOn: true })
  const third = advanceWalk(second, full('0'), 10)
  expect(third).toMatchObject({ mark: at('2'), again: at('0'), goesOn: true })
  expect(advanceWalk(third, part('2'), 10)).toMatchObject({ mark: at('2'), again: START, goesOn: false })
})

test('an empty page keeps the mark', () => {
  const empty = { counts: [0], seen: 0, last: undefined }
  expect(advanceWalk({ ...BEGUN, mark: at('7') }, empty, 10)).toMatchObject({ mark: at('7'), isAtMark: false })
})

test.each([
  ['goes 1000 pages ahead', true, 1_000],
  ['looks again at 100 pages', false, 100],
])('a round %s at most, and the next one goes on from there', (_, isAtMark, most) => {
  let walk: LedgerWalk = { ...BEGUN, isAtMark }
  let pages = 0
  while (walk.goesOn) {
    pages += 1
    walk = advanceWalk(walk, full(String(pages)), 10)
  }
  expect(pages).toBe(most)
  expect(isAtMark ? walk.mark : walk.again).toEqual(at(String(most)))
})

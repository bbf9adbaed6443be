import { expect, test } from 'vitest'
import type { EventId } from '../../base/id.ts'
import { decideLoss, decideRepublishFrom, type KnownEntries, type KnownOfLog } from './loss.ts'

const known = (change: Partial<KnownOfLog> = {}): KnownOfLog => ({
  ...{ incarnation: 'a', sequence: 9, ownSequence: 7, ownEvent: 'own' as EventId },
  ...{ adoptedIncarnation: null, adoptedSequence: null, adoptedEvent: null },
  ...change,
})
const adopted = { adoptedIncarnation: 'a', adoptedSequence: 5, adoptedEvent: 'there' as EventId }
const LOG = { incarnation: 'a', sequence: 9, firstSequence: 1 }
const ALL: KnownEntries = { own: { id: 'own' }, adopted: { id: 'there' } }
const NONE: KnownEntries = { own: undefined, adopted: undefined }

const certain = { isCertain: true, isAdopted: false }
const doubtful = { loss: 'behind', isCertain: false, isAdopted: false }

test('a log that has all that is known of it, or of which nothing was confirmed, has lost nothing', () => {
  expect(decideLoss(known(), LOG, ALL)).toBeUndefined()
  expect(decideLoss(known({ incarnation: null }), LOG, NONE)).toBeUndefined()
  // Without an own message the confirmed end alone is compared.
  const none = { ownSequence: null, ownEvent: null }
  expect(decideLoss(known(none), LOG, NONE)).toBeUndefined()
  expect(decideLoss(known({ ...none, sequence: 0 }), { ...LOG, sequence: 0, firstSequence: 0 }, NONE)).toBeUndefined()
})

test('a log of another incarnation was replaced', () => {
  expect(decideLoss(known(), { ...LOG, incarnation: 'b' }, NONE)).toEqual({ loss: 'replaced', ...certain })
})

test('a log with another message at the place of the own one has lost it; with none, or a shorter end, perhaps', () => {
  expect(decideLoss(known(), LOG, { ...ALL, own: { id: 'other' } })).toEqual({ loss: 'behind', ...certain })
  expect(decideLoss(known(), LOG, NONE)).toEqual(doubtful)
  expect(decideLoss(known(), { ...LOG, sequence: 8 }, ALL)).toEqual(doubtful)
})

test('a message that age or size has removed is not compared', () => {
  expect(decideLoss(known(), { ...LOG, firstSequence: 8 }, NONE)).toBeUndefined()
  expect(decideLoss(known(), { ...LOG, firstSequence: 8 }, { ...NONE, own: { id: 'other' } })).toBeUndefined()
  expect(decideLoss(known(), { ...LOG, firstSequence: 7 }, NONE)).toEqual(doubtful)
})

test('the last message of a database that an account came from is compared as well, and the gravest loss counts', () => {
  expect(decideLoss(known(adopted), LOG, ALL)).toBeUndefined()
  // The end that was confirmed there is not known: a short log is no loss of it.
  const short = { ...LOG, sequence: 4, firstSequence: 6 }
  expect(decideLoss(known({ ...adopted, incarnation: null }), short, NONE)).toBeUndefined()
  // A cell that has confirmed nothing yet.
  expect(
    decideLoss(known({ ...adopted, incarnation: null }), LOG, { own: undefined, adopted: { id: 'other' } }),
  ).toEqual({
    ...{ loss: 'behind', isCertain: true, isAdopted: true },
  })
  expect(decideLoss(known(adopted), LOG, { ...ALL, adopted: undefined })).toEqual({ ...doubtful, isAdopted: true })
  const other = { ...known(adopted), adoptedIncarnation: 'b' }
  const replaced = { loss: 'replaced', isCertain: true, isAdopted: true }
  for (const own of [{ id: 'own' }, { id: 'other' }, undefined])
    expect(decideLoss(other, LOG, { own, adopted: undefined })).toEqual(replaced)
  expect(decideLoss(known(adopted), LOG, { own: undefined, adopted: { id: 'other' } })).toEqual({
    ...{ loss: 'behind', isCertain: true, isAdopted: true },
  })
  expect(decideLoss(known(adopted), LOG, { own: { id: 'other' }, adopted: undefined })).toEqual({
    ...{ loss: 'behind', isCertain: true, isAdopted: true },
  })
})

test('events are published again from five minutes before the last one that is there, or all that the log would hold', () => {
  const now = new Date(10_000_000)
  const from = (loss: 'replaced' | 'behind', lastAtMs?: number) => {
    const lastAt = lastAtMs === undefined ? undefined : new Date(lastAtMs)
    return decideRepublishFrom(loss, { lastAt, now, maxAgeMs: 4_000_000 }).getTime()
  }
  expect([from('replaced'), from('replaced', 9_000_000), from('behind')]).toEqual([6_000_000, 6_000_000, 6_000_000])
  expect(from('behind', 9_000_000)).toBe(8_700_000)
  expect(from('behind', 6_200_000)).toBe(6_000_000)
})

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { EventId } from '../../base/id.ts'
import { adoptEnd, decideAdopted, readLogEnd } from './adopted.store.ts'
import { openOutbox } from './outbox.store.ts'

const { db, pool } = await openForFile(createTestDatabase())

const NONE = { adoptedIncarnation: null, adoptedSequence: null, adoptedEvent: null }

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
  expect(decideAdopted({ ...end, ...given, adoptedSequence: 5 })).toMatchObject({
    adoptedSequence: 5,
    adoptedEvent: 'o',
  })
  const ofAnother = { ...end, ...given, incarnation: 'b', ownSequence: null, ownEvent: null }
  expect(decideAdopted(ofAnother)).toMatchObject(given)
  expect(decideAdopted({ ...end, isRepublishing: true })).toEqual(unknown)
})

test('of several moves the last message counts, of several logs none: all is published again', async () => {
  expect(await readLogEnd(db)).toBeUndefined()
  await openOutbox(db)
  const own = { incarnation: null, sequence: 0, ownSequence: null, ownEvent: null, isRepublishing: false }
  expect(await readLogEnd(db)).toEqual({ ...own, ...NONE })
  const end = (incarnation: string, sequence: number | null) => ({
    ...{ adoptedIncarnation: incarnation, adoptedSequence: sequence },
    adoptedEvent: sequence === null ? null : (randomUUID() as EventId),
  })
  const adopt = async (given: ReturnType<typeof end>) => {
    await adoptEnd(db, given)
    return readLogEnd(db)
  }
  const [first, last, late] = [end('a', 5), end('a', 7), end('a', 6)]
  expect(await adopt(first)).toEqual({ ...own, ...first })
  expect(await adopt(last)).toEqual({ ...own, ...last })
  expect(await adopt(late)).toEqual({ ...own, ...last })
  expect(await adopt(end('b', 9))).toMatchObject({ adoptedIncarnation: '-' })
  // What came before, and was published again since, does not count.
  await pool.query('update event_log set adopted_incarnation = null, republish_until = now()')
  expect(await readLogEnd(db)).toEqual({ ...own, ...NONE, isRepublishing: true })
  expect(await adopt(first)).toMatchObject(first)
  expect(await adopt(end('-', null))).toMatchObject(end('-', null))
})

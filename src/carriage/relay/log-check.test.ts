import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { buildMemoryLog } from '../../../test/harness/carriage/memory-log.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { EventId } from '../../base/id.ts'
import type { EventLog, LogMessage } from '../log/log.ts'
import { examineLog, findLastOwn } from './log-check.ts'
import type { KnownOfLog } from './loss.ts'

const { db, pool } = await openForFile(createTestDatabase())
const MINUTE_MS = 60_000
const at = (minute: number) => new Date(Date.UTC(2026, 8, 11) + minute * MINUTE_MS)

/** A log that stores what is appended at the minute of `time`. */
function openLog() {
  const time = { minute: 0 }
  const log = buildMemoryLog(() => at(time.minute))
  const append = async (...ids: string[]) => {
    const messages = ids.map((id) => ({ id, subject: 'ev', recordedAt: at(0), headers: {}, body: '' }) as LogMessage)
    await log.append(messages, await log.readState())
  }
  const others = (count: number) => append(...Array.from({ length: count }, () => randomUUID()))
  /** Appends events of the database, recorded at these minutes; with `origin` taken in from another one. */
  const record = async (minutes: readonly number[], origin: string | null = null) => {
    for (const minute of minutes) {
      const id = randomUUID()
      await pool.query(
        `insert into event_occurrence (document_id, event, resource, action, created_at, origin)
         values ($1, 'invoice.create', 'invoice', 'create', $2, $3)`,
        [id, at(minute), origin],
      )
      await append(id)
    }
  }
  const find = async (given: { ownAt?: Date; adoptedSequence?: number } = {}, of: EventLog = log) => {
    const { ownAt = null, adoptedSequence = null } = given
    return findLastOwn(db, of, { state: await log.readState(), ownAt, adoptedSequence })
  }
  return { time, log, append, others, record, find }
}

test('the last own event at the end of the log is found, among those of others, and what is no event', async () => {
  const { others, record, append, find } = openLog()
  expect(await find()).toBeUndefined()
  await record([3, 2])
  await record([4], 'home')
  await others(1)
  await append('no id of an event', `${randomUUID()}0`, `x${randomUUID()}`)
  expect(await find()).toEqual(at(2))
  expect(await find({ ownAt: at(3) })).toEqual(at(2))
  await record([6])
  expect(await find()).toEqual(at(6))
})

test('the end is the last 250 messages; before them is looked behind the last own message alone', async () => {
  const { time, others, record, find } = openLog()
  await record([1])
  await others(249)
  expect(await find()).toEqual(at(1))
  time.minute = 10
  await others(1)
  expect(await find()).toBeUndefined()
  // What was stored within five minutes of the last own message may be later than it.
  expect(await find({ ownAt: at(15) })).toEqual(at(1))
  expect(await find({ ownAt: at(16) })).toBeUndefined()
  expect(await find({ ownAt: at(5) })).toBeUndefined()
})

test('what is stored behind a place is not taken for what is before it, though the log has gaps', async () => {
  const { time, log, others, record, find } = openLog()
  await record([1])
  await others(9)
  time.minute = 10
  await record([20])
  await others(250)
  const gaps = {
    ...log,
    read: async (query: Parameters<EventLog['read']>[0]) => {
      const { from, limit } = query
      const entries = await log.read({ from, limit: limit + 5 })
      return entries.filter(({ sequence }) => sequence < 2 || sequence > 6).slice(0, limit)
    },
  }
  expect(await find({ ownAt: at(15) }, gaps)).toEqual(at(1))
})

test('messages up to the last one of a database that an account came from say nothing', async () => {
  const { log, record, others, find } = openLog()
  await record([1, 2])
  await others(1)
  expect(await find({ adoptedSequence: 1 })).toEqual(at(2))
  expect(await find({ adoptedSequence: 2 })).toBeUndefined()
  for (const sequence of [3, 9]) expect(await find({ adoptedSequence: sequence })).toBeUndefined()
  log.expire(1)
  expect(await find({ adoptedSequence: 0 })).toEqual(at(2))
})

test('the log is read at the places that are known, and at no others', async () => {
  const { log, append } = openLog()
  await append('a', 'b', 'c')
  const read: unknown[] = []
  const watched: EventLog = {
    ...log,
    readAt: (sequence) => {
      read.push(sequence)
      return log.readAt(sequence)
    },
  }
  const { incarnation } = await log.readState()
  const known: KnownOfLog = {
    ...{ incarnation, sequence: 3, ownSequence: null, ownEvent: null },
    ...{ adoptedIncarnation: null, adoptedSequence: null, adoptedEvent: null },
  }
  expect(await examineLog(watched, { ...known, adoptedSequence: 2 })).toMatchObject({ found: undefined })
  expect(read).toEqual([])
  const own = { ownSequence: 3, ownEvent: 'c' as EventId }
  const adopted = { adoptedIncarnation: incarnation, adoptedSequence: 2, adoptedEvent: 'x' as EventId }
  expect(await examineLog(watched, { ...known, ...own })).toMatchObject({ state: { sequence: 3 }, found: undefined })
  expect(await examineLog(watched, { ...known, ...own, ...adopted })).toMatchObject({
    found: { loss: 'behind', isCertain: true, isAdopted: true },
  })
  expect(read).toEqual([3, 3, 2])
})

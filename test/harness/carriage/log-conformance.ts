import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  type EventLog,
  fingerprintOf,
  type LogEntry,
  type LogMessage,
  type LogPosition,
} from '../../../src/carriage/log/log.ts'

/** A log under test. */
export interface LogUnderTest extends AsyncDisposable {
  log: EventLog
  /** Another log of the same name takes its place. */
  replace(): Promise<void>
  /** Removes the messages up to a sequence. */
  expire(upTo: number): Promise<void>
  /** Another writer on the same log. */
  open(): Promise<EventLog>
}

const ACCOUNT = '0190a5c0-0000-7000-8000-00000000000a'

/** A message of a test, with text that needs care. */
export function buildTestMessage(n: number, subject = `ev.${ACCOUNT}.contract.update`): LogMessage {
  return {
    subject,
    id: randomUUID(),
    recordedAt: new Date(Date.UTC(2026, 8, 11) + n),
    headers: { traceparent: `00-${'0'.repeat(30)}${String(n % 100).padStart(2, '0')}-0000000000000001-01` },
    body: JSON.stringify({ n, text: 'ö"\n😀' }),
  }
}

const build = (count: number, subject?: string) =>
  Array.from({ length: count }, (_, index) => buildTestMessage(index, subject))
const plain = ({ sequence: _sequence, storedAt: _storedAt, ...message }: LogEntry): LogMessage => message
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: { code?: string }) => error.code,
  )

/** The guarantees of every log (docs/contract/event-log.md). `openLog` makes an empty one; undefined: there is no way to one. */
export function describeLog(name: string, openLog: (() => Promise<LogUnderTest>) | undefined): void {
  describe(`the log ${name}`, () => {
    const onLog = (guarantee: string, run: (under: LogUnderTest, start: LogPosition) => Promise<void>) =>
      test(guarantee, async () => {
        if (!openLog) return
        await using under = await openLog()
        await run(under, await under.log.readState())
      })

    onLog('returns what was appended, in its order, with headers and bodies as given', async ({ log }, start) => {
      expect(start).toMatchObject({ sequence: 0, messages: 0 })
      expect(await log.readLast()).toBeUndefined()
      const [first, second] = [build(1), build(300)]
      const middle = await log.append(first, start)
      expect(middle).toEqual({ incarnation: start.incarnation, sequence: 1 })
      const end = await log.append(second, middle)
      expect(end.sequence).toBe(301)
      const entries = await log.read({ from: start, limit: 1_000 })
      expect(entries.map(plain)).toEqual([...first, ...second])
      expect(entries.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 301 }, (_, index) => index + 1))
      expect(await log.readLast()).toEqual(entries.at(-1))
      expect(await log.read({ from: end, limit: 10 })).toEqual([])
      expect(await log.readState()).toMatchObject({ sequence: 301, firstSequence: 1, messages: 301 })
    })

    onLog('takes a message with an id that it has: nothing is dropped as a duplicate', async ({ log }, start) => {
      const messages = build(3)
      const middle = await log.append(messages, start)
      await log.append(messages, middle)
      expect((await log.read({ from: start, limit: 10 })).map(plain)).toEqual([...messages, ...messages])
    })

    onLog('reads by parts, from a position, from a time and of some subjects', async ({ log }, start) => {
      const other = build(2, 'ev.none.user.create')
      await log.append([...build(3), ...other, ...build(1)], start)
      const sequences = async (from: LogPosition | Date, limit: number, subject?: string) =>
        (await log.read({ from, limit, ...(subject && { subject }) })).map(({ sequence }) => sequence)
      expect(await sequences({ ...start, sequence: 2 }, 2)).toEqual([3, 4])
      expect(await sequences(start, 10, 'ev.none.>')).toEqual([4, 5])
      expect(await sequences(start, 1, 'ev.*.user.create')).toEqual([4])
      expect(await sequences(start, 10, 'ev.none.*')).toEqual([])
      const [third] = await log.read({ from: { ...start, sequence: 2 }, limit: 1 })
      expect(await sequences(third?.storedAt ?? new Date(), 10)).toContain(6)
      expect(await sequences(new Date(Date.now() + 3_600_000), 10)).toEqual([])
    })

    onLog('appends behind its end alone, and all of a batch or nothing', async (under, start) => {
      const other = await under.open()
      const end = await other.append(build(2), start)
      expect(await codeOf(under.log.append(build(5), start))).toBe('conflict')
      expect(await codeOf(under.log.append(build(5), { ...end, sequence: 3 }))).toBe('conflict')
      expect(await under.log.readState()).toMatchObject({ sequence: 2 })
      expect(await under.log.append(build(1_000), end)).toMatchObject({ sequence: 1_002 })
      await other.close()
    })

    onLog('has one winner among writers at the same position', async (under, start) => {
      const other = await under.open()
      const outcomes = await Promise.all(
        [under.log, other, under.log, other].map((log) => codeOf(log.append(build(50), start))),
      )
      expect(outcomes.toSorted()).toEqual(['conflict', 'conflict', 'conflict', 'done'])
      expect(await under.log.readState()).toMatchObject({ sequence: 50 })
      await other.close()
    })

    onLog('has a message by its number, until it is removed', async (under, start) => {
      const { log } = under
      expect(await log.readAt(1)).toBeUndefined()
      await log.append(build(5), start)
      const entries = await log.read({ from: start, limit: 10 })
      for (const entry of entries) expect(await log.readAt(entry.sequence)).toEqual(entry)
      expect(await log.readAt(6)).toBeUndefined()
      await under.expire(2)
      expect(await log.readAt(2)).toBeUndefined()
      expect(log.countReconnects()).toBe(0)
      await under.replace()
      expect(await log.readAt(3)).toBeUndefined()
    })

    onLog('compares the message at the position of a read with the one that was there', async (under, start) => {
      const { log } = under
      const end = await log.append(build(5), start)
      const entries = await log.read({ from: start, limit: 10 })
      const at = (sequence: number) => fingerprintOf(entries[sequence - 1] as LogEntry)
      const read = async (sequence: number, fingerprint: string, limit = 10) =>
        (await log.read({ from: { ...end, sequence }, fingerprint, limit })).map((entry) => entry.sequence)
      expect(await read(2, at(2))).toEqual([3, 4, 5])
      expect(await read(2, at(2), 2)).toEqual([3, 4])
      expect(await read(5, at(5))).toEqual([])
      expect(await codeOf(read(2, at(3)))).toBe('replaced')
      expect(await codeOf(read(4, ''))).toBe('replaced')
      expect(await codeOf(read(6, at(5)))).toBe('ahead')
      await under.expire(3)
      // What is gone cannot be compared.
      expect(await read(3, at(3))).toEqual([4, 5])
      expect(await codeOf(read(2, at(2)))).toBe('expired')
    })

    onLog('tells a reader of a replaced log, of one that is behind, and of removed messages', async (under, start) => {
      const { log } = under
      const end = await log.append(build(5), start)
      const read = (sequence: number, incarnation = end.incarnation) =>
        codeOf(log.read({ from: { incarnation, sequence }, limit: 10 }))
      expect(await read(6)).toBe('ahead')
      await under.expire(3)
      expect(await read(2)).toBe('expired')
      expect((await log.read({ from: { ...end, sequence: 3 }, limit: 10 })).map(({ sequence }) => sequence)).toEqual([
        4, 5,
      ])
      expect(await log.readState()).toMatchObject({ sequence: 5, firstSequence: 4, messages: 2 })
      await under.replace()
      expect(await read(5)).toBe('replaced')
      expect(await codeOf(log.append(build(1), end))).toBe('conflict')
      const state = await log.readState()
      expect(state).toMatchObject({ sequence: 0, messages: 0 })
      expect(state.incarnation).not.toBe(end.incarnation)
    })
  })
}

import { expect, test } from 'vitest'
import { type EventLog, fingerprintOf, type LogEntry } from '../log/log.ts'
import type { IntakeState } from './intake.store.ts'
import { buildSuspicion } from './suspicion.ts'

const entry = (id: string) => ({ id, sequence: 4, storedAt: new Date(0) }) as LogEntry
const AT: IntakeState = {
  ...{
    incarnation: 'a',
    sequence: 4,
    storedAt: new Date(0),
    fingerprint: fingerprintOf(entry('mine')),
    readSince: null,
  },
}

/** A log whose message at the position is `found`. */
function open() {
  const state = { found: 'mine' as string | undefined, end: 4, reconnects: 0, reads: 0, states: 0, nowMs: 0 }
  const log = {
    countReconnects: () => state.reconnects,
    readAt: async (sequence: number) => {
      expect(sequence).toBe(4)
      state.reads += 1
      return state.found === undefined ? undefined : entry(state.found)
    },
    readState: async () => {
      state.states += 1
      return { incarnation: 'a', sequence: state.end, firstSequence: 1, messages: state.end, bytes: 0 }
    },
  } as unknown as EventLog
  return { state, log, suspicion: buildSuspicion(() => state.nowMs) }
}

test('a suspicion is certain five seconds after it began, and begins anew once it has ended', () => {
  const { state, suspicion } = open()
  expect(suspicion.isConfirmed()).toBe(false)
  state.nowMs = 4_999
  expect(suspicion.isConfirmed()).toBe(false)
  state.nowMs = 5_000
  expect(suspicion.isConfirmed()).toBe(true)
  suspicion.end()
  expect(suspicion.isConfirmed()).toBe(false)
})

test('the message at the position is compared at first, then every ten seconds, and on each new connection', async () => {
  const { state, log, suspicion } = open()
  const compared = async (of: EventLog = log) => {
    const before = state.reads
    await suspicion.check(of, AT)
    return state.reads > before
  }
  expect([await compared(), await compared()]).toEqual([true, false])
  state.nowMs = 9_999
  expect(await compared()).toBe(false)
  state.nowMs = 10_000
  expect([await compared(), await compared()]).toEqual([true, false])
  state.reconnects += 1
  expect([await compared(), await compared()]).toEqual([true, false])
  expect([await compared({ ...log }), await compared()]).toEqual([true, true])
  // A suspicion is reason enough, and ends when the message is the same.
  suspicion.isConfirmed()
  expect([await compared(), await compared()]).toEqual([true, false])
  state.nowMs += 5_000
  expect(suspicion.isConfirmed()).toBe(false)
  expect(state.states).toBe(0)
})

test('a connection that is made again during the comparison is compared once more', async () => {
  const { state, log, suspicion } = open()
  const again = {
    ...log,
    readAt: async (sequence: number) => {
      state.reconnects += 1
      return log.readAt(sequence)
    },
  }
  await suspicion.check(again, AT)
  await suspicion.check(again, AT)
  expect(state.reads).toBe(2)
})

test('a position without its message, or with another one, is a fault, and stays a suspicion', async () => {
  const { state, log, suspicion } = open()
  Object.assign(state, { found: 'other' })
  await expect(suspicion.check(log, AT)).rejects.toMatchObject({ code: 'replaced' })
  await expect(suspicion.check(log, AT)).rejects.toMatchObject({ code: 'replaced' })
  Object.assign(state, { found: undefined, end: 3 })
  await expect(suspicion.check(log, AT)).rejects.toMatchObject({ code: 'ahead' })
})

test('without a fingerprint the end of the log alone is compared; before the first message, and behind an instant, nothing', async () => {
  const { state, log, suspicion } = open()
  await suspicion.check(log, { ...AT, incarnation: null })
  state.reconnects += 1
  await suspicion.check(log, { ...AT, readSince: new Date(0) })
  expect([state.reads, state.states]).toEqual([0, 0])
  state.reconnects += 1
  await suspicion.check(log, { ...AT, fingerprint: null })
  expect([state.reads, state.states]).toEqual([0, 1])
  Object.assign(state, { end: 3, reconnects: 9 })
  await expect(suspicion.check(log, { ...AT, fingerprint: null })).rejects.toMatchObject({ code: 'ahead' })
})

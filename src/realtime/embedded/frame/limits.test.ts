import { expect, test } from 'vitest'
import { buildLimits } from './limits.ts'
import { encodeTextFrame, writeEvent, writeSubscribed } from './server-frame.ts'

const MEBIBYTE = 1_048_576

test('a client that does not read has 1 MiB waiting by default, or what is given', () => {
  expect(buildLimits().waitingBytes).toBe(MEBIBYTE)
  expect(buildLimits({ waitingBytes: 1_000, members: 10_000 }).waitingBytes).toBe(1_000)
})

test('the list of as many members as may be, and one event as large as may be, fit twice', () => {
  for (const limits of [buildLimits(), buildLimits({ members: 1_000 }), buildLimits({ eventBytes: MEBIBYTE })]) {
    const info = '"'.repeat((limits.memberBytes - 64) / 2)
    const members = Array.from({ length: limits.members }, (_, n) => ({ id: `user-${n}`, info }))
    const list = encodeTextFrame(writeSubscribed('presence-a', members))
    const data = '\u0001'.repeat(limits.eventBytes)
    const event = encodeTextFrame(writeEvent({ event: 'e', channel: 'private-a', data }))
    expect(2 * list.length).toBeLessThanOrEqual(limits.waitingBytes)
    expect(2 * (event.length - 100)).toBeLessThanOrEqual(limits.waitingBytes)
  }
})

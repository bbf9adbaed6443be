import { expect, test } from 'vitest'
import type { DispatchRecord } from './dispatch.store.ts'
import { toDispatchRow } from './dispatch-row.ts'

const AT = new Date('2026-09-11T12:00:00.000Z')

const row = (change: Partial<DispatchRecord>) =>
  toDispatchRow({
    trigger: 'schedule',
    isThrottled: false,
    nextAttemptAt: null,
    createdAt: AT,
    updatedAt: AT,
    ...change,
  } as DispatchRecord)

test('a row says whether its attempt is a replay, why it waits and until when', () => {
  expect(row({})).toMatchObject({ is_replay: false, waiting_reason: null, next_attempt_at: null })
  expect(row({ trigger: 'replay' })).toMatchObject({ is_replay: true })
  expect(row({ isThrottled: true, nextAttemptAt: AT })).toMatchObject({
    ...{ waiting_reason: 'throttled', next_attempt_at: AT.toISOString() },
  })
})

import { describe, expect, test } from 'vitest'
import { buildReplayProblem, decideReplay, type ReplayQuestion } from './replay.ts'

const ask = (change: Partial<ReplayQuestion> = {}) =>
  decideReplay({
    ...{ status: 'failed', isWebhookActive: true, isInFlight: false, isReplayWaiting: false, hasEvent: true },
    ...{ isConfirmed: false, ...change },
  })

describe('a replay', () => {
  test('is made of a row that has failed, while its webhook is active and its event is there', () => {
    expect(ask()).toBe('replay')
    expect(ask({ isWebhookActive: false })).toBe('webhook_inactive')
    expect(ask({ isInFlight: true })).toBe('under_way')
    expect(ask({ hasEvent: false })).toBe('event_gone')
    expect(ask({ isReplayWaiting: true })).toBe('replay_waiting')
  })

  test.each(['success', 'pending', 'retrying'] as const)('of a row that is %s is confirmed', (status) => {
    expect(ask({ status })).toBe('not_confirmed')
    expect(ask({ status, isConfirmed: true })).toBe('replay')
  })

  test('is refused for what the caller can change before what has to be waited for', () => {
    const all = { status: 'success', isWebhookActive: false, isInFlight: true, hasEvent: false } as const
    expect(ask({ ...all, isReplayWaiting: true })).toBe('webhook_inactive')
    expect(ask({ ...all, isWebhookActive: true })).toBe('not_confirmed')
    expect(ask({ ...all, isWebhookActive: true, isConfirmed: true })).toBe('under_way')
    expect(ask({ hasEvent: false, isReplayWaiting: true })).toBe('event_gone')
  })
})

test('each refusal has a problem that says what to do', () => {
  expect(buildReplayProblem('webhook_inactive', 'failed')).toMatchObject({ code: 'webhook_inactive' })
  expect(buildReplayProblem('not_confirmed', 'retrying')).toMatchObject({
    code: 'duplicate_not_confirmed',
    message: expect.stringContaining('The row is retrying'),
  })
  for (const refusal of ['under_way', 'replay_waiting', 'event_gone'] as const)
    expect(buildReplayProblem(refusal, 'failed')).toMatchObject({ code: 'conflict' })
})

import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { accountChannel } from '../src/channel.ts'
import {
  buildChannelSubscription,
  DENIED_RETRY_MS,
  type LibraryChannel,
  SUBSCRIBE_LIMIT_MS,
} from '../src/channel-subscription.ts'
import { isDebugWanted, redact } from '../src/debug.ts'
import { decideWait, isFinalClose } from '../src/nudge.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A channel of the client library whose server answers when the test says so. */
function openChannel() {
  const bound = new Map<string, (data: unknown) => void>()
  const seen = { subscribed: 0, disconnected: 0 }
  const channel: LibraryChannel = {
    bind: (event, callback) => bound.set(event, callback),
    bind_global: () => undefined,
    unbind_all: () => bound.clear(),
    subscribe: () => {
      seen.subscribed += 1
    },
    disconnect: () => {
      seen.disconnected += 1
    },
    subscribed: false,
  }
  const subscription = buildChannelSubscription(accountChannel('a'))
  subscription.attach(channel)
  return { subscription, seen, say: (event: string, data: unknown = {}) => bound.get(event)?.(data) }
}

test('a subscription that stays unanswered is asked for again, until it is answered', () => {
  const t = openChannel()
  t.subscription.noteConnection('connected')
  vi.advanceTimersByTime(SUBSCRIBE_LIMIT_MS)
  expect(t.seen).toEqual({ subscribed: 1, disconnected: 1 })
  vi.advanceTimersByTime(SUBSCRIBE_LIMIT_MS)
  expect(t.seen.subscribed).toBe(2)
  t.say('pusher:subscription_succeeded')
  vi.advanceTimersByTime(10 * SUBSCRIBE_LIMIT_MS)
  expect([t.seen.subscribed, t.subscription.read()]).toEqual([2, { kind: 'live' }])
})

test('an authorization that is not available for the moment is tried again', () => {
  const t = openChannel()
  t.say('pusher:subscription_error', { type: 'AuthError', status: 503 })
  expect(t.subscription.read()).toEqual({ kind: 'unavailable' })
  vi.advanceTimersByTime(5_000)
  expect(t.seen.subscribed).toBe(1)
})

test('a refusal of the service is shown with its reason, and asked again after 15 s, 30 s, and at last every five minutes', () => {
  const t = openChannel()
  const refuse = (reason: string) => {
    t.subscription.noteRefusal(reason)
    t.say('pusher:subscription_error', { type: 'AuthError' })
  }
  refuse('not yours')
  t.subscription.noteConnection('unavailable')
  const waits: number[] = []
  for (let asked = 0; asked < 7; asked += 1) {
    let ms = 0
    for (; t.seen.subscribed === asked; ms += 1_000) vi.advanceTimersByTime(1_000)
    waits.push(ms / 1_000)
    refuse(`not yours, ${asked}`)
    expect(t.subscription.read()).toEqual({ kind: 'denied', reason: `not yours, ${asked}` })
  }
  expect(waits).toEqual([15, 30, 60, 120, 240, 300, 300])
})

test('a channel whose access returns is live again, and a later refusal is asked again soon', () => {
  const t = openChannel()
  const refuse = () => t.say('pusher:subscription_error', { type: 'AuthError', status: 403 })
  refuse()
  vi.advanceTimersByTime(DENIED_RETRY_MS)
  refuse()
  vi.advanceTimersByTime(2 * DENIED_RETRY_MS)
  t.say('pusher:subscription_succeeded')
  vi.advanceTimersByTime(600_000)
  expect([t.seen.subscribed, t.subscription.read()]).toEqual([2, { kind: 'live' }])
  refuse()
  vi.advanceTimersByTime(DENIED_RETRY_MS)
  expect(t.seen.subscribed).toBe(3)
})

test('a refused channel that the service cannot answer for the moment is tried again as any other', () => {
  const t = openChannel()
  t.say('pusher:subscription_error', { type: 'AuthError', status: 403 })
  vi.advanceTimersByTime(DENIED_RETRY_MS)
  t.say('pusher:subscription_error', { type: 'AuthError', status: 503 })
  expect(t.subscription.read()).toEqual({ kind: 'unavailable' })
  vi.advanceTimersByTime(5_000)
  expect(t.seen.subscribed).toBe(2)
})

test('a subscription that the server ends is denied', () => {
  const t = openChannel()
  t.say('pusher:subscription_succeeded')
  t.say('pusher:subscription_error', { type: 'AuthError', error: 'The access ended.', status: 403 })
  expect(t.subscription.read()).toEqual({ kind: 'denied', reason: 'The access ended.' })
})

test('waits grow to 15 s, and differ by up to a quarter', () => {
  expect([0, 1, 2, 3, 9].map((tries) => decideWait(tries, 0))).toEqual([2_000, 4_000, 8_000, 15_000, 15_000])
  expect(decideWait(0, 1)).toBe(2_500)
})

test.each([
  [4001, true],
  [4004, false],
  [4009, false],
  [4100, false],
  [4200, false],
  [1006, false],
  [null, false],
])('after close code %s connecting again is of no use: %s', (code, isFinal) => {
  expect(isFinalClose(code)).toBe(isFinal)
})

test.each([
  ['?realtime_debug=1', null, true],
  ['?pusher_debug=1', null, true],
  ['?a=b', '1', true],
  ['?realtime_debug=0', '0', false],
  ['', null, false],
])('with %s and %s in the storage, debug output is wanted: %s', (search, stored, isWanted) => {
  expect(isDebugWanted({ location: { search }, localStorage: { getItem: () => stored } })).toBe(isWanted)
})

test('a storage that may not be read counts as empty', () => {
  const localStorage = {
    getItem: () => {
      throw new Error('SecurityError')
    },
  }
  expect(isDebugWanted({ localStorage })).toBe(false)
})

test('signatures, secrets and payloads are taken out of a line, at every depth', () => {
  const hash = 'a1'.repeat(32)
  const sent = { event: 'pusher:subscribe', data: { auth: `key:${hash}`, channel: 'c' } }
  const line = `Pusher :  : ${JSON.stringify(['Event sent', sent, { data: { user_data: '{"id":"u-1"}' } }])}`
  expect(redact(line)).toBe(
    'Pusher :  : ["Event sent",{"event":"pusher:subscribe","data":{"auth":"[redacted]","channel":"c"}},{"data":{"user_data":"[redacted]"}}]',
  )
  expect(redact('["Event recd",{"event":"contract.update","data":{"id":"1"}}]')).toBe(
    '["Event recd",{"event":"contract.update","data":"[10 characters]"}]',
  )
  expect(redact('Event {"auth":"cut')).toBe('Event [12 characters]')
  expect(redact(`Invalid signature ${hash}`)).toBe('Invalid signature [redacted]')
})

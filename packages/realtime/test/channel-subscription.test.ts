import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { accountChannel } from '../src/channel.ts'
import type { AskReplay } from '../src/channel-resume.ts'
import {
  buildChannelSubscription,
  DENIED_RETRY_MS,
  type LibraryChannel,
  SUBSCRIBE_LIMIT_MS,
} from '../src/channel-subscription.ts'
import { isDebugWanted, redact } from '../src/debug.ts'
import { decideWait, isFinalClose } from '../src/nudge.ts'
import { BUFFER_LIMIT, type Replay } from '../src/resume-merge.ts'
import type { ServiceAnswer } from '../src/service-call.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A channel of the client library whose server answers when the test says so. */
function openChannel(ask?: AskReplay) {
  const bound = new Map<string, (data: unknown, metadata?: { user_id?: string }) => void>()
  let hear: (event: string, data: unknown) => void = () => undefined
  const seen = { subscribed: 0, disconnected: 0 }
  const sent: [event: string, data: unknown][] = []
  const channel: LibraryChannel = {
    bind: (event, callback) => bound.set(event, callback),
    bind_global: (callback) => {
      hear = callback
    },
    unbind_all: () => bound.clear(),
    subscribe: () => {
      seen.subscribed += 1
    },
    disconnect: () => {
      seen.disconnected += 1
    },
    trigger: (event, data) => sent.push([event, data]) > 0,
    subscribed: false,
  }
  const subscription = buildChannelSubscription(accountChannel('a'), ask && { ask })
  subscription.attach(channel)
  return {
    ...{ subscription, seen, sent, channel, publish: (event: string, data: unknown) => hear(event, data) },
    say: (event: string, data: unknown = {}, metadata?: { user_id?: string }) => bound.get(event)?.(data, metadata),
  }
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

test('a full channel is denied with its reason, and asked again as a refused one', () => {
  const t = openChannel()
  t.say('pusher:subscription_error', { type: 'LimitReached', error: 'Too many members', status: 429 })
  expect(t.subscription.read()).toEqual({ kind: 'denied', reason: 'Too many members' })
  vi.advanceTimersByTime(DENIED_RETRY_MS - 1)
  expect(t.seen.subscribed).toBe(0)
  vi.advanceTimersByTime(1)
  expect(t.seen.subscribed).toBe(1)
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
  const joined = { event: 'pusher_internal:member_added', data: { user_id: 'u-1', user_info: { name: 'Ann' } } }
  const list = {
    event: 'pusher_internal:subscription_succeeded',
    data: { presence: { hash: { 'u-1': { name: 'Ann' } } } },
  }
  for (const frame of [joined, list]) expect(redact(JSON.stringify(['Event recd', frame]))).not.toContain('Ann')
  expect(redact('Event {"auth":"cut')).toBe('Event [12 characters]')
  expect(redact(`Invalid signature ${hash}`)).toBe('Invalid signature [redacted]')
})

/** A channel that was live at the position `p-1` and is subscribed again at `p-2`; its replays are answered by the test. */
async function openAgain() {
  const asked: unknown[] = []
  const answers: ((answer: ServiceAnswer<Replay>) => void)[] = []
  const t = openChannel((position) => {
    asked.push(position)
    return new Promise((resolve) => answers.push(resolve))
  })
  const got: string[] = []
  const log = (text: string) => void got.push(text)
  t.subscription.on('contract.update', (message) => log(message.id.slice(-1)))
  t.subscription.onMissed(() => log('missed'))
  t.subscription.onState(() => log(t.subscription.read().kind))
  const join = (position?: string) => {
    t.subscription.noteConnection('connecting')
    t.subscription.noteConnection('connected')
    t.subscription.noteAuthorized(position)
    t.say('pusher:subscription_succeeded')
  }
  const answer = async (given: ServiceAnswer<Replay>) => {
    answers.shift()?.(given)
    await vi.advanceTimersByTimeAsync(0)
  }
  join('p-1')
  t.publish('contract.update', message(1))
  join('p-2')
  got.length = 0
  return { ...t, asked, got, join, answer, arrive: (n: number) => t.publish('contract.update', message(n)) }
}

const idOf = (n: number) => `01890a5d-ac96-774b-bcce-b302099a805${n}`
const message = (n: number) => ({ id: idOf(n), type: 'contract.update', api_version: '2026-09-11' })
const replayOf = (...numbers: number[]): ServiceAnswer<Replay> => ({
  kind: 'answer',
  body: { missed: false, messages: numbers.map(message) },
})
const MISSED: ServiceAnswer<Replay> = { kind: 'answer', body: { missed: true, messages: [] } }
const AWAY: ServiceAnswer<Replay> = { kind: 'unavailable', reason: 'no answer' }

test('after an interruption what was missed is delivered before what arrives meanwhile, and then the channel is live', async () => {
  const t = await openAgain()
  expect([t.asked, t.subscription.read()]).toEqual([[{ since: 'p-1', after: idOf(1) }], { kind: 'connecting' }])
  t.arrive(3)
  t.arrive(4)
  expect(t.got).toEqual([])
  await t.answer(replayOf(1, 2, 3))
  t.arrive(4)
  t.arrive(5)
  expect(t.got).toEqual(['2', '3', '4', 'live', '5'])
  t.join('p-3')
  expect(t.asked[1]).toEqual({ since: 'p-2', after: idOf(5) })
})

test('a channel that missed too much is live, and says so after what has arrived', async () => {
  const t = await openAgain()
  t.arrive(4)
  await t.answer(MISSED)
  expect(t.got).toEqual(['4', 'live', 'missed'])
})

test('a replay that is not available is tried again twice, and one that is refused is not', async () => {
  const t = await openAgain()
  await t.answer(AWAY)
  await vi.advanceTimersByTimeAsync(1_000)
  await t.answer(AWAY)
  await vi.advanceTimersByTimeAsync(2_000)
  await t.answer(AWAY)
  await vi.advanceTimersByTimeAsync(4_000)
  expect([t.asked.length, t.got]).toEqual([3, ['live', 'missed']])
  const refused = await openAgain()
  await refused.answer({ kind: 'refused', reason: 'not yours' })
  expect([refused.asked.length, refused.got]).toEqual([1, ['live', 'missed']])
})

test('an interruption of a replay resumes from the same position, and the answer to the first is void', async () => {
  const t = await openAgain()
  t.arrive(3)
  t.join('p-3')
  await t.answer(replayOf(1, 2))
  expect([t.got, t.asked[1]]).toEqual([[], { since: 'p-1', after: idOf(1) }])
  await t.answer(replayOf(1, 2, 3))
  expect(t.got).toEqual(['2', '3', 'live'])
})

test('who was refused meanwhile gets nothing of that time: the channel says that it missed some', async () => {
  const t = await openAgain()
  t.say('pusher:subscription_error', { type: 'AuthError', status: 403 })
  await t.answer(replayOf(1, 2))
  t.subscription.noteAuthorized('p-3')
  t.say('pusher:subscription_succeeded')
  expect([t.got, t.asked.length]).toEqual([['denied', 'live', 'missed'], 1])
})

test('a service that names no position cannot make up for an interruption', async () => {
  const t = openChannel()
  const got: string[] = []
  t.subscription.onMissed(() => got.push('missed'))
  t.say('pusher:subscription_succeeded')
  expect(got).toEqual([])
  t.say('pusher:subscription_succeeded')
  expect([got, t.subscription.read()]).toEqual([['missed'], { kind: 'live' }])
})

test('too many messages during a replay end it', async () => {
  const t = await openAgain()
  for (let n = 0; n <= BUFFER_LIMIT; n += 1) t.publish('news', { n })
  expect(t.got).toEqual(['live', 'missed'])
  await t.answer(replayOf(1, 2))
  expect(t.got).toEqual(['live', 'missed'])
})

test('who has left hears nothing of the answer', async () => {
  const t = await openAgain()
  t.subscription.end()
  await t.answer(replayOf(1, 2))
  expect(t.got).toEqual([])
})

interface Typing {
  field: string
}
const isTyping = (data: unknown): data is Typing => typeof (data as Partial<Typing> | null)?.field === 'string'

test('client events are sent while the channel is live, and arrive at once, also while a replay is awaited', async () => {
  const t = await openAgain()
  const arrived: unknown[] = []
  const end = t.subscription.onClient('client-typing', (...event) => arrived.push(event), isTyping)
  expect(t.subscription.send('client-typing', { field: 'name' })).toBe(false)
  t.say('client-typing', { field: 'name' }, { user_id: 'ann' })
  t.say('client-typing', { field: 1 })
  t.publish('client-typing', { field: 'name' })
  expect(arrived).toEqual([[{ field: 'name' }, { user: 'ann' }]])
  await t.answer(replayOf())
  expect(t.subscription.send('client-typing', { field: 'name' })).toBe(true)
  expect(t.sent).toEqual([['client-typing', { field: 'name' }]])
  end()
  t.say('client-typing', { field: 'name' })
  expect(arrived).toHaveLength(1)
})

test('client events arrive on the channel of a new connection too', () => {
  const t = openChannel()
  const arrived: unknown[] = []
  t.subscription.onClient(
    'client-typing',
    (data) => arrived.push(data),
    () => true,
  )
  t.subscription.attach(t.channel)
  t.say('client-typing', 1)
  expect(arrived).toEqual([1])
  t.subscription.end()
  t.say('client-typing', 2)
  expect(arrived).toEqual([1])
})

test('a handler that throws keeps no channel from being live', async () => {
  const t = await openAgain()
  t.subscription.on('contract.update', () => {
    throw new Error('of the page')
  })
  const caught = new Promise((resolve) => process.once('unhandledRejection', resolve))
  await t.answer(replayOf(2))
  expect(t.subscription.read()).toEqual({ kind: 'live' })
  expect(String(await caught)).toBe('Error: of the page')
})

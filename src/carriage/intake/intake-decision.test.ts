import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { AccountId, EventId } from '../../base/id.ts'
import { buildCarriedSeal, CARRIED_HEADER, type Carried, type LoggedEvent, writeCarried } from '../log/carried-event.ts'
import type { LogEntry } from '../log/log.ts'
import { decideIntake, decideReadSince, findFault } from './intake-decision.ts'

const HOME = '0190a5c0-0000-7000-8000-0000000000f0'
const ACCOUNT = '0190a5c0-0000-7000-8000-00000000000a' as AccountId
const OLDEST = new Date(1_000_000)
const seals = buildCarriedSeal([Buffer.alloc(32, 1)])

function textOf(over: Partial<LoggedEvent & Carried> = {}): { id: string; text: string } {
  const { home = HOME, origin = 'home', reference = null, ...event } = over
  const given = {
    ...{ id: randomUUID() as EventId, type: 'invoice.create', account: ACCOUNT, resource: 'invoice', action: 'create' },
    ...{ resourceId: null, url: null, trace: null, isPurge: false, excludedWebhook: null, createdAt: OLDEST },
    ...event,
  }
  return { id: given.id, text: writeCarried({ ...given, carried: { home, origin, reference } }) }
}
const entry = (id: string, headers: Record<string, string>) => ({ id, headers }) as unknown as LogEntry
function sealed(over?: Partial<LoggedEvent & Carried>, name = CARRIED_HEADER): LogEntry {
  const { id, text } = textOf(over)
  return entry(id, { [name]: seals.seal(text) })
}
function decide(entries: readonly LogEntry[], over: { self?: string; own?: ReadonlyMap<AccountId, Date> } = {}) {
  const rest = { home: HOME, self: 'one', open: seals.open, oldest: OLDEST, ...over }
  const decision = decideIntake(entries, { ...rest, isPassedOver: (type) => type === 'webhook.test' })
  return { ...decision, events: decision.events.map(({ event }) => event.id) }
}
const nothing = { events: [], reference: undefined, tooOld: 0, foreign: 0 }

test('a cell takes events of home, and home those of cells; the others are passed over without a look at their seal', () => {
  const [ofHome, ofOne, ofTwo] = [sealed(), sealed({ origin: 'one' }), sealed({ origin: 'two' })]
  const all = [ofHome, ofOne, ofTwo]
  expect(decide(all)).toEqual({ ...nothing, events: [ofHome.id] })
  expect(decide(all, { self: 'home' })).toEqual({ ...nothing, events: [ofOne.id, ofTwo.id] })
  const { id, text } = textOf({ origin: 'two' })
  expect(decide([entry(id, { [CARRIED_HEADER]: `${'x'.repeat(43)}.${text}` })])).toEqual(nothing)
  // Another form, in which the origin is not seen before.
  expect(decide([entry(id, { [CARRIED_HEADER]: seals.seal(text.replace('[1,', '[1, ')) })])).toEqual(nothing)
  expect(decide([sealed({ type: 'webhook.test' })])).toEqual(nothing)
})

test('a header is found in any case, and a message without one is of before', () => {
  const message = sealed({}, CARRIED_HEADER.toUpperCase())
  expect(decide([message])).toEqual({ ...nothing, events: [message.id] })
  expect(decide([entry(randomUUID(), {}), entry(randomUUID(), { 'Nats-Msg-Id': '1' })])).toEqual(nothing)
})

test('what has another seal, form, service or id is foreign', () => {
  const { id, text } = textOf()
  for (const self of ['one', 'home'])
    expect(decide([entry(id, { [CARRIED_HEADER]: 'garbage' })], { self })).toEqual({ ...nothing, foreign: 1 })
  const messages = [
    entry(id, { [CARRIED_HEADER]: `${'x'.repeat(43)}.${text}` }),
    entry(id, { [CARRIED_HEADER]: seals.seal('[]') }),
    entry(randomUUID(), { [CARRIED_HEADER]: seals.seal(text) }),
    sealed({ home: randomUUID() }),
  ]
  const last = sealed()
  expect(decide([...messages, last])).toEqual({ ...nothing, foreign: 4, events: [last.id] })
})

test('an event is too old before the oldest instant, or before that of its account, whichever is later', () => {
  const at = (ms: number, account: AccountId | null = ACCOUNT) => sealed({ account, createdAt: new Date(ms) })
  const [old, kept, later] = [at(999_999), at(1_000_000), at(1_000_001)]
  expect(decide([old, kept, later])).toEqual({ ...nothing, events: [kept.id, later.id], tooOld: 1 })
  const own = new Map([[ACCOUNT, new Date(1_000_001)]])
  expect(decide([old, kept, later], { own })).toEqual({ ...nothing, events: [later.id], tooOld: 2 })
  const ofNone = at(1_000_000, null)
  expect(decide([ofNone], { own })).toEqual({ ...nothing, events: [ofNone.id] })
  expect(decide([old], { own: new Map([[ACCOUNT, new Date(0)]]) })).toEqual({ ...nothing, tooOld: 1 })
})

test('the position that is needed is the latest, as a number, of those that are taken', () => {
  const references = (...list: (string | null)[]) => decide(list.map((reference) => sealed({ reference }))).reference
  expect(references(null)).toBeUndefined()
  expect([references('9/0', null), references(null, '9/0')]).toEqual(['9/0', '9/0'])
  expect([references('9/0', '10/0'), references('10/0', '9/0')]).toEqual(['10/0', '10/0'])
  expect([references('1/9', '1/10'), references('2/1', '1/2')]).toEqual(['1/10', '2/1'])
  const old = sealed({ reference: 'F/F', createdAt: new Date(0) })
  expect(decide([old, sealed({ reference: '1/0' })]).reference).toBe('1/0')
})

test('a fault of the log makes it be read again from five minutes before the last message, or as a whole', () => {
  expect((['replaced', 'ahead', 'expired', 'unreachable', undefined] as const).map(findFault)).toEqual([
    ...['replaced', 'ahead', 'expired', undefined, undefined],
  ])
  const since = (fault: 'replaced' | 'expired', ms: number | null) =>
    decideReadSince(fault, ms === null ? null : new Date(ms)).getTime()
  expect([since('replaced', 1_000_000), since('replaced', 299_999), since('replaced', null)]).toEqual([700_000, 0, 0])
  expect(since('expired', 1_000_000)).toBe(0)
})

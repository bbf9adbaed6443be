import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import type { LoggedEvent } from './carried-event.ts'
import { buildEventMessage, buildSubject } from './event-message.ts'

const EVENT = {
  id: '0190a5c0-0000-7000-8000-000000000001',
  type: 'contract.update',
  account: '0190a5c0-0000-7000-8000-00000000000a',
  ...{ resource: 'contract', action: 'update', resourceId: null, url: null, trace: null },
  createdAt: new Date('2026-09-11T10:00:00.123Z'),
} as LoggedEvent

test('the subject has the account, or none, and the tokens of the event type', () => {
  expect(buildSubject(EVENT)).toBe('ev.0190a5c0-0000-7000-8000-00000000000a.contract.update')
  expect(buildSubject({ account: null, type: 'user.purge' })).toBe('ev.none.user.purge')
  expect(buildSubject({ account: null, type: 'a*.b>c d.ö' })).toBe('ev.none.a%2A.b%3Ec%20d.%C3%B6')
  expect(buildSubject({ account: null, type: 'a..b' })).toBe('ev.none.a.%.b')
})

test('any event type gives a subject without wildcards, and two types never the same', () => {
  const text = fc.oneof(fc.string({ unit: anyCharacter, maxLength: 20 }), fc.stringMatching(/^[a%*>. ]{0,12}$/))
  fc.assert(
    fc.property(text, text, (given, other) => {
      const [first, second] = [given, other].map((type) => buildSubject({ account: null, type: type.toWellFormed() }))
      expect(first).toMatch(/^ev\.none(\.[A-Za-z0-9_%-]+)+$/)
      expect(first === second).toBe(given.toWellFormed() === other.toWellFormed())
    }),
  )
})

test('the trace of the request is in the headers of W3C Trace Context', () => {
  const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const headersOf = (given: string | null) => buildEventMessage({ ...EVENT, trace: given }, () => '{}').headers
  expect(headersOf(null)).toEqual({})
  expect(headersOf(trace)).toEqual({ traceparent: trace })
  expect(headersOf(`${trace} a=1,b=2`)).toEqual({ traceparent: trace, tracestate: 'a=1,b=2' })
})

import { expect, test } from 'vitest'
import { FatalError } from '../../app/log/fatal.ts'
import { readEventMap, resolveEvents } from './event-map.ts'

const KNOWN = new Set(['contract.create', 'contract.update'])

test('a name stands for itself where it exists, for what the map says else, and null leaves it out', () => {
  const map = readEventMap('{"a":"contract.create","b":["contract.update","contract.create"],"c":null}', KNOWN)
  expect(resolveEvents(['contract.update'], new Map(), KNOWN)).toEqual({ ok: true, events: ['contract.update'] })
  const all = resolveEvents(['a', 'b', 'c'], map, KNOWN)
  expect(all).toEqual({ ok: true, events: ['contract.create', 'contract.update'] })
  expect(resolveEvents(['c'], map, KNOWN)).toEqual({ ok: true, events: [] })
})

test('the map comes before a type of the same name', () => {
  const map = readEventMap('{"contract.update":"contract.create"}', KNOWN)
  expect(resolveEvents(['contract.update'], map, KNOWN)).toEqual({ ok: true, events: ['contract.create'] })
})

test('every unknown name is told, and * stands for an endpoint without a filter', () => {
  const names = ['x', 'toString', '__proto__', 'constructor', 'contract.update']
  expect(resolveEvents(names, new Map(), KNOWN)).toEqual({ ok: false, unknown: names.slice(0, 4) })
  expect(resolveEvents('all', new Map(), KNOWN)).toEqual({ ok: false, unknown: ['*'] })
  const map = readEventMap('{"*":["contract.update"],"__proto__":null}', KNOWN)
  expect(resolveEvents('all', map, KNOWN)).toEqual({ ok: true, events: ['contract.update'] })
  expect(resolveEvents(['__proto__'], map, KNOWN)).toEqual({ ok: true, events: [] })
})

test.each([
  ['{', 'is not JSON'],
  ['[]', 'must be an object'],
  ['null', 'must be an object'],
  ['{"a":1}', 'a must name an event type'],
  ['{"a":["contract.create",null]}', 'a must name an event type'],
  ['{"a":"contract.created"}', 'a names contract.created, which is not an active event type here'],
])('the map %s is refused', (text, says) => {
  expect(() => readEventMap(text, KNOWN)).toThrow(FatalError)
  expect(() => readEventMap(text, KNOWN)).toThrow(says)
})

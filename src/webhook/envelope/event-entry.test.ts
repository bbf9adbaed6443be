import { expect, test } from 'vitest'
import { newId } from '../../../test/harness/database/identity-rows.ts'
import type { EventTypeId } from '../../base/id.ts'
import { type KnownType, resolveEntries, splitEntries } from './event-entry.ts'

const typeOf = (internal: string, change: Partial<KnownType> = {}): KnownType => ({
  ...{ id: newId<EventTypeId>(), internal, isActived: true, isSubscribed: false, ...change },
})
const [a, b] = [typeOf('a.create'), typeOf('b.create')]
const off = typeOf('off.create', { isActived: false })
const kept = typeOf('kept.create', { isActived: false, isSubscribed: true })
const known = [a, b, off, kept]

test('entries are ids or names, each once', () => {
  expect(splitEntries(['a.create', a.id, 'a.create', b.id, a.id, 'b'])).toEqual({
    ids: [a.id, b.id],
    names: ['a.create', 'b'],
  })
  expect(splitEntries([])).toEqual({ ids: [], names: [] })
})

test('entries are resolved in their order, by id or name, and a deactivated type may stay', () => {
  expect(resolveEntries([b.id, 'a.create', 'kept.create'], known)).toEqual([b.id, a.id, kept.id])
  expect(resolveEntries([], known)).toEqual([])
})

test('each entry that is unknown or newly deactivated has an error at its place', () => {
  const resolve = () => resolveEntries(['a.create', 'x', off.id, 'kept.create'], known)
  expect(resolve).toThrow(
    expect.objectContaining({
      code: 'validation_failed',
      message: expect.stringMatching(/^events\.1: is not an event type/),
      errors: [
        { path: 'events.1', code: 'unknown_event', message: expect.any(String) },
        { path: 'events.2', code: 'event_deactivated', message: 'off.create was deactivated by an operator' },
      ],
    }),
  )
})

import { expect, test } from 'vitest'
import { describeRowChange } from './row-change.ts'

test('only members that differ are told, with both values', () => {
  const before = { name: 'Till', url: 'https://a.example/x', is_actived: true, limit: null, updated_at: '1' }
  const after = { name: 'Till', url: 'https://b.example/x', is_actived: false, limit: 5, updated_at: '2' }
  expect(describeRowChange(before, after)).toEqual({
    changes: {
      url: { from: 'https://a.example/x', to: 'https://b.example/x' },
      is_actived: { from: true, to: false },
      limit: { from: null, to: 5 },
    },
  })
  expect(describeRowChange(before, { ...before, updated_at: '2' })).toEqual({})
})

test('of a list, the items that came and went are told; another order is told as a change without items', () => {
  expect(describeRowChange({ roles: ['a', 'b'] }, { roles: ['b', 'c'] })).toEqual({
    changes: { roles: { added: ['c'], removed: ['a'] } },
  })
  expect(describeRowChange({ roles: ['a', 'b'] }, { roles: ['b', 'a'] })).toEqual({
    changes: { roles: { added: [], removed: [] } },
  })
  const many = Array.from({ length: 51 }, (_, n) => `p:${n}`)
  expect(describeRowChange({ permissions: [] }, { permissions: many })).toEqual({
    changes: { permissions: { added: many.slice(0, 50), removed: [] } },
  })
})

test('a member that only the answer has is left out: what is shown once is never kept', () => {
  expect(describeRowChange({ name: 'a' }, { name: 'b', secret: 'whsec_1' })).toEqual({
    changes: { name: { from: 'a', to: 'b' } },
  })
})

test('the query of a URL is left out, and the end of a text of more than 200 characters', () => {
  const before = { url: 'https://a.example/x?token=1', name: 'n'.repeat(200) }
  const after = { url: 'https://a.example/y#part', name: 'm'.repeat(201) }
  expect(describeRowChange(before, after)).toEqual({
    changes: {
      url: { from: 'https://a.example/x?…', to: 'https://a.example/y?…' },
      name: { from: 'n'.repeat(200), to: `${'m'.repeat(200)}…` },
    },
  })
})

test('an entry has at most 4 KiB of values; of other members it says that they changed', () => {
  const rowOf = (letter: string) =>
    Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`member_${n}`, letter.repeat(200)]))
  const told = describeRowChange(rowOf('a'), rowOf('b'))
  expect(JSON.stringify(told.changes).length).toBeLessThanOrEqual(4096)
  expect([...Object.keys(told.changes ?? {}), ...(told.changes_without_values ?? [])]).toEqual(Object.keys(rowOf('a')))
  expect(told.changes_without_values).toHaveLength(3)
})

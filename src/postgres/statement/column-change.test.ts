import { expect, test } from 'vitest'
import { asPart, columnChange } from './column-change.ts'

const change = columnChange<{ name?: string | null; url?: string; now: Date }>('webhook', {
  name: 'name = $name',
  url: 'url = $url, generation = generation + 1',
  now: 'updated_at = $now',
})
const NOW = new Date(0)

test('only the columns of the given members are written, null included', () => {
  expect(change('1', { name: null, now: NOW })).toEqual({
    name: expect.stringMatching(/^change of webhook \d+: name, now$/),
    text: 'update webhook set name = $1, updated_at = $2 where document_id = $3',
    values: [null, NOW, '1'],
  })
})

test('the order of the members changes nothing', () => {
  const [first, other] = [
    change('1', { url: 'u', name: 'n', now: NOW }),
    change('1', { now: NOW, name: 'n', url: 'u' }),
  ]
  expect(first).toEqual(other)
  expect(first.text).toContain('set name = $1, url = $2, generation = generation + 1, updated_at = $3')
})

test('members of no column are not taken, whatever they are called', () => {
  const foreign = { now: NOW, 'is_admin = true, name': 'x' }
  expect(change('1', foreign).text).toBe('update webhook set updated_at = $1 where document_id = $2')
})

test('a part of with has the same values under another text', () => {
  const fragment = change('1', { now: NOW })
  expect(asPart('changed', fragment)).toEqual({ ...fragment, text: `changed as (${fragment.text})` })
})

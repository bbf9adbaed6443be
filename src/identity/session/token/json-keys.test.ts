import { expect, test } from 'vitest'
import { hasAmbiguousKeys } from './json-keys.ts'

test.each([
  '{}',
  '[]',
  '"a"',
  '1',
  '{"a":1,"b":2}',
  '{"a":{"a":1},"b":{"a":1}}',
  '{"a":[{"a":1},{"a":2}]}',
  '["a","a"]',
  '{"a":["a","a"],"b":"a"}',
  '{"a":"b","b":"a"}',
  '{"a":"\\",\\"a","b":1}',
  '{"a":"{\\"a\\":1,","b":"}"}',
  '{"a":"\\\\","b":1}',
  '{ "a" : 1 ,\n"A" : 2 }',
  '{"a":[],"b":{}}',
  '{"a":[1,2],"b":["b"]}',
])('%s has no member twice', (json) => {
  expect(() => JSON.parse(json)).not.toThrow()
  expect(hasAmbiguousKeys(json)).toBe(false)
})

test.each([
  '{"a":1,"a":2}',
  '{"a":1,"\\u0061":2}',
  '{"a":{"b":1,"b":2}}',
  '[{"a":1},{"b":1,"b":2}]',
  '{"a":{"b":1},"a":2}',
  '{"a":[1,2],"b":1,"a":2}',
  '{"a":"x","a":"x"}',
  '{"a":"\\\\","a":1}',
  '{"a":"\\"","a":1}',
  '{"":1,"":2}',
  '{ "a" : 1 , "a" : 2 }',
])('%s has one twice', (json) => {
  expect(() => JSON.parse(json)).not.toThrow()
  expect(hasAmbiguousKeys(json)).toBe(true)
})

test('sixteen levels are read, and no more', () => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    const nest = (depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`
    expect([hasAmbiguousKeys(nest(16)), hasAmbiguousKeys(nest(17))]).toEqual([false, true])
    // What was closed does not count.
    expect(hasAmbiguousKeys(`[${Array.from({ length: 20 }, () => nest(15)).join(',')}]`)).toBe(false)
  }
})

test('the scan ends for text that is no JSON', () => {
  for (const text of ['"', '["a', '["a\\', ']]}}', ',"a"', '{']) expect(typeof hasAmbiguousKeys(text)).toBe('boolean')
})

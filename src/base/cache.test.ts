import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { expectLinear } from '../../test/harness/run/linear.ts'
import { buildCache, buildTimedCache } from './cache.ts'

const fill = (size: number) => {
  const cache = buildCache<string, object>({ limit: size })
  for (let at = 0; at < size; at += 1) cache.put(`key ${at}`, {})
  return { cache, size }
}

describe('a cache', () => {
  test('keeps what was used last, up to its limit, and says what is gone', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd', 'e')
    const step = fc.oneof(
      fc.record({ kind: fc.constantFrom('find' as const, 'put' as const, 'drop' as const), key }),
      fc.record({ kind: fc.constant('clear' as const), key }),
    )
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 80 }), (limit, steps) => {
        const gone: string[] = []
        const cache = buildCache<string, number>({ limit, onGone: (key, value) => gone.push(`${key} ${value}`) })
        let expected: [string, number][] = []
        const expectedGone: string[] = []
        const take = (key: string) => {
          const found = expected.find(([known]) => known === key)
          expected = expected.filter((item) => item !== found)
          return found
        }
        const leave = (entry: [string, number] | undefined) => entry && expectedGone.push(entry.join(' '))
        for (const [at, { kind, key }] of steps.entries()) {
          if (kind === 'find') {
            const found = take(key)
            if (found) expected.push(found)
            expect(cache.find(key)).toBe(found?.[1])
          } else if (kind === 'put') {
            cache.put(key, at)
            leave(take(key))
            expected.push([key, at])
            if (expected.length > limit) leave(expected.shift())
          } else if (kind === 'drop') {
            cache.drop(key)
            leave(take(key))
          } else {
            cache.clear()
            for (const entry of expected) leave(entry)
            expected = []
          }
          expect(cache.entries()).toEqual(expected)
          expect(cache.count()).toBe(expected.length)
        }
        expect(gone.sort()).toEqual(expectedGone.sort())
      }),
    )
  })

  test('takes the same time for an entry that is used again and again, however many others there are', () => {
    expectLinear(fill, ({ cache, size }) => {
      for (let at = 0; at < size; at += 1) cache.find('key 0')
    })
  })

  test('takes the same time for an entry that another makes room for, however many there are', () => {
    let name = 0
    expectLinear(fill, ({ cache, size }) => {
      for (let at = 0; at < size; at += 1) {
        name += 1
        cache.put(`new ${name}`, {})
      }
    })
  })
})

describe('a value with a time of its own', () => {
  const open = (limit = 10) => {
    const state = { nowMs: 0 }
    return { state, cache: buildTimedCache<string, string>({ limit, clock: { now: () => state.nowMs } }) }
  }

  test('serves until it is over, to the millisecond, and then not even when the clock goes back', () => {
    const { state, cache } = open()
    cache.put('a', 'value', 1_000)
    state.nowMs = 999
    expect(cache.find('a')).toBe('value')
    state.nowMs = 1_000
    expect(cache.find('a')).toBeUndefined()
    state.nowMs = 999
    expect(cache.find('a')).toBeUndefined()
  })

  test('does not serve for longer because the clock is set back', () => {
    const { state, cache } = open()
    state.nowMs = 1e9
    cache.put('a', 'value', 1_000)
    state.nowMs = 1e9 - 1_000
    expect(cache.find('a')).toBeUndefined()
  })

  test('begins its time anew when it is put again, and makes room as others do', () => {
    const { state, cache } = open(2)
    cache.put('a', 'first', 1_000)
    cache.put('b', 'other', 5_000)
    state.nowMs = 900
    cache.put('a', 'second', 1_000)
    state.nowMs = 1_800
    expect(cache.find('a')).toBe('second')
    cache.put('c', 'more', 1_000)
    expect(['a', 'b', 'c'].map((key) => cache.find(key))).toEqual(['second', undefined, 'more'])
  })
})

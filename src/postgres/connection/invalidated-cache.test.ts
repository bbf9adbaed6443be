import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildInvalidatedCache, type Invalidation, readInvalidations } from './invalidated-cache.ts'

const NOW = new Date(Date.UTC(2026, 8, 11))
const later = (ms: number) => new Date(NOW.getTime() + ms)

interface Entry {
  name: string
  user?: string
  expiresAt?: Date
}

/** A cache of entries that a change of their session or their user makes out of date. */
function open(options: { limit?: number } = {}) {
  const connection = { isLive: true }
  const reads: string[] = []
  const cache = buildInvalidatedCache<Entry>({
    limit: options.limit ?? 100,
    isLive: () => connection.isLive,
    changesOf: (key, { user }) => [`s:${key}`, ...(user === undefined ? [] : [`u:${user}` as const])],
    expiryOf: ({ expiresAt = null }) => expiresAt,
  })
  const read = (key: string, entry: Partial<Entry> = {}, now = NOW) =>
    cache.read(
      key,
      async () => {
        reads.push(key)
        return { name: key, ...entry }
      },
      now,
    )
  return { cache, connection, reads, read, find: (key: string, now = NOW) => cache.find(key, now)?.name }
}

describe('a cached value', () => {
  test('is read once, and found under its key only', async () => {
    const { read, reads, find } = open()
    await read('a')
    expect(await read('a')).toEqual({ name: 'a' })
    expect([find('a'), find('b'), reads]).toEqual(['a', undefined, ['a']])
  })

  test('is used only while the listening connection is live', async () => {
    const { connection, find, read, reads } = open()
    await read('a')
    connection.isLive = false
    expect(find('a')).toBeUndefined()
    await read('a')
    connection.isLive = true
    expect([find('a'), reads]).toEqual(['a', ['a', 'a']])
  })

  test('expires, to the millisecond', async () => {
    const { find, read } = open()
    await read('a', { expiresAt: later(1000) })
    expect(find('a', later(999))).toBe('a')
    expect(find('a', later(1000))).toBeUndefined()
    expect(find('a', NOW)).toBeUndefined()
  })

  test.each(['s:a', 'u:one', '*'] as const)('is dropped by %s', async (change) => {
    const { cache, find, read } = open()
    await read('a', { user: 'one' })
    cache.invalidate(change)
    expect(find('a')).toBeUndefined()
  })

  test.each(['s:b', 'u:two', 'r', 'k:a'] as const)('stays after the change %s', async (change) => {
    const { cache, find, read } = open()
    await read('a', { user: 'one' })
    cache.invalidate(change)
    expect(find('a')).toBe('a')
  })

  test('is dropped with all of its user', async () => {
    const { cache, find, read } = open()
    for (const key of ['a', 'b']) await read(key, { user: 'one' })
    await read('c')
    cache.invalidate('u:one')
    expect(['a', 'b', 'c'].map((key) => find(key))).toEqual([undefined, undefined, 'c'])
  })

  test.each(['s:a', 's:another', '*'] as const)(
    'is not cached when %s was reported during the read',
    async (change) => {
      const { cache, find } = open()
      const read = cache.read('a', async () => {
        cache.invalidate(change)
        return { name: 'old' }
      })
      expect(await read).toEqual({ name: 'old' })
      expect(find('a')).toBeUndefined()
    },
  )

  test('is not what does not exist', async () => {
    const { cache, read, reads } = open()
    expect(await cache.read('a', async () => undefined)).toBeUndefined()
    await read('a')
    expect(reads).toEqual(['a'])
  })

  test('makes room when it is the one that was used longest ago', async () => {
    const { find, read } = open({ limit: 2 })
    await read('a')
    await read('b')
    expect(find('a')).toBe('a')
    await read('c')
    expect(['a', 'b', 'c'].map((key) => find(key))).toEqual(['a', undefined, 'c'])
  })
})

test('several values are read at once, without those that are cached, unless a change was reported during the read', async () => {
  const { cache, connection, read, find } = open()
  await read('a')
  const asked: (readonly string[])[] = []
  const readAll = (keys: readonly string[], change?: Invalidation) =>
    cache.readAll(keys, async (missing) => {
      asked.push(missing)
      if (change) cache.invalidate(change)
      return new Map(missing.map((key) => [key, { name: key }]))
    })
  expect([...(await readAll(['a', 'b', 'c', 'b'])).keys()].sort()).toEqual(['a', 'b', 'c'])
  expect([...(await readAll(['c', 'a'])).keys()].sort()).toEqual(['a', 'c'])
  expect(asked).toEqual([['b', 'c']])
  expect((await readAll(['d'], 's:other')).get('d')).toEqual({ name: 'd' })
  expect([find('b'), find('d')]).toEqual(['b', undefined])
  connection.isLive = false
  expect((await readAll(['a', 'b'])).size).toBe(2)
  expect(asked.at(-1)).toEqual(['a', 'b'])
})

test('after any sequence of reads and changes nothing is found that a later change made out of date', async () => {
  const step = fc.oneof(
    fc.record({ key: fc.nat(5), user: fc.nat(2) }),
    fc.record({ change: fc.constantFrom<Invalidation>('s:0', 's:1', 'u:0', 'u:1', '*', 'r') }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { cache, read, find } = open({ limit: 4 })
      const expected = new Map<string, string>()
      for (const step of steps) {
        if ('key' in step) {
          const key = String(step.key)
          const isCached = find(key) !== undefined
          await read(key, { user: String(step.user) })
          if (!isCached) expected.set(key, String(step.user))
        } else {
          cache.invalidate(step.change)
          for (const [key, user] of expected)
            if (['*', `s:${key}`, `u:${user}`].includes(step.change)) expected.delete(key)
        }
        for (let key = 0; key <= 5; key += 1)
          if (find(`${key}`) !== undefined) expect(expected.has(`${key}`)).toBe(true)
      }
    }),
  )
})

test.each([
  ['', []],
  ['*', ['*']],
  ['s:a,u:b', ['s:a', 'u:b']],
])('the report %j is %j', (text, changes) => {
  expect(readInvalidations(text)).toEqual(changes)
})

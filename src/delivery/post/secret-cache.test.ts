import { expect, test } from 'vitest'
import type { Keyring } from '../../base/keyring.ts'
import { buildSealedCache, openSealed } from './secret-cache.ts'

/** A cache that tells what it opens; what is sealed as `bad` does not open. */
function open(limit = 10) {
  const opened: string[] = []
  const keyring = {
    open: (sealed: string, context: string) => {
      opened.push(`${context} ${sealed}`)
      if (sealed === 'bad') throw new Error('a value does not open')
      return `text of ${sealed}`
    },
  } as unknown as Keyring
  const cache = buildSealedCache(keyring, {
    contextOf: (receiver) => `of ${receiver}`,
    prepare: (text) => ({ text }),
    limit,
  })
  return { cache, opened }
}

test('what a receiver has sealed is opened once, and anew when it changes', () => {
  const { cache, opened } = open()
  const first = cache.open('one', 'a')
  expect(first).toEqual({ text: 'text of a' })
  expect(cache.open('one', 'a')).toBe(first)
  expect(cache.open('two', 'a')).not.toBe(first)
  expect(cache.open('one', 'b')).toEqual({ text: 'text of b' })
  expect(cache.open('one', 'a')).not.toBe(first)
  expect(opened).toEqual(['of one a', 'of two a', 'of one b', 'of one a'])
})

test('as many receivers are held as the limit, and what does not open is held for none', () => {
  const { cache, opened } = open(1)
  cache.open('one', 'a')
  expect(() => cache.open('one', 'bad')).toThrow('does not open')
  cache.open('one', 'a')
  cache.open('two', 'a')
  cache.open('one', 'a')
  expect(opened).toEqual(['of one a', 'of one bad', 'of one a', 'of two a', 'of one a'])
})

test('a receiver without a sealed value has none, and one that does not open says so', () => {
  const { cache } = open()
  expect([openSealed(cache, 'one', null), openSealed(cache, 'one', 'bad')]).toEqual([undefined, 'unreadable'])
  expect(openSealed(cache, 'one', 'a')).toEqual({ text: 'text of a' })
})

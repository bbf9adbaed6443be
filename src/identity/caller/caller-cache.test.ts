import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expectLinear } from '../../../test/harness/run/linear.ts'
import type { UserId } from '../../base/id.ts'
import { buildCallerCache, type HeldCaller } from './caller-cache.ts'

const NOW = new Date(Date.UTC(2026, 8, 11))
const later = (ms: number) => new Date(NOW.getTime() + ms)

const held = (name: string, change: Partial<HeldCaller<string>> = {}): HeldCaller<string> => ({
  caller: name,
  userId: `user-${name}` as UserId,
  note: `s:${name}`,
  expiresAt: null,
  ...change,
})

function open(options: { limit?: number } = {}) {
  const proof = { isProven: true }
  const cache = buildCallerCache<string>(() => proof.isProven, options.limit)
  const hold = (name: string, change?: Partial<HeldCaller<string>>) =>
    cache.hold(name, held(name, change), cache.mark())
  return { cache, proof, hold, find: (name: string, now = NOW) => cache.find(name, now) }
}

describe('a cached caller', () => {
  it('is found under its token only', () => {
    const { hold, find } = open()
    hold('a')
    expect(find('a')).toBe('a')
    expect(find('b')).toBeUndefined()
  })

  it('is used only while notes are proven to arrive', () => {
    const { hold, find, proof } = open()
    hold('a')
    proof.isProven = false
    expect(find('a')).toBeUndefined()
    proof.isProven = true
    expect(find('a')).toBe('a')
  })

  it('expires with its session or key, to the millisecond', () => {
    const { hold, find } = open()
    hold('a', { expiresAt: later(1000) })
    expect(find('a', later(999))).toBe('a')
    expect(find('a', later(1000))).toBeUndefined()
    expect(find('a', later(0))).toBeUndefined()
  })

  it.each([
    ['its session', 's:a'],
    ['its user', 'u:user-a'],
    ['everything', '*'],
  ])('is dropped by a note of %s', (_, note) => {
    const { cache, hold, find } = open()
    hold('a')
    cache.apply(note)
    expect(find('a')).toBeUndefined()
  })

  it.each(['s:b', 'u:user-b', 'r', 'k:a', ''])('stays after an unrelated note: %j', (note) => {
    const { cache, hold, find } = open()
    hold('a')
    cache.apply(note)
    expect(find('a')).toBe('a')
  })

  it('is dropped with all entries of its user', () => {
    const { cache, hold, find } = open()
    for (const name of ['a', 'b']) hold(name, { userId: 'one' as UserId })
    hold('c')
    cache.apply('u:one')
    expect(['a', 'b', 'c'].map((name) => find(name))).toEqual([undefined, undefined, 'c'])
  })

  it('is not cached when any note arrived during the read', () => {
    const { cache, find } = open()
    const mark = cache.mark()
    cache.apply('s:another')
    cache.hold('a', held('a'), mark)
    expect(find('a')).toBeUndefined()
  })

  it('is evicted when it is the least recently used', () => {
    const { hold, find } = open({ limit: 2 })
    hold('a')
    hold('b')
    expect(find('a')).toBe('a')
    hold('c')
    expect(['a', 'b', 'c'].map((name) => find(name))).toEqual(['a', undefined, 'c'])
  })
})

it('takes the same time for a caller that asks again and again, however many are held', () => {
  const fill = (size: number) => {
    const { find, hold } = open({ limit: size })
    for (let at = 0; at < size; at += 1) hold(`${at}`)
    return { find, size }
  }
  expectLinear(fill, ({ find, size }) => {
    for (let at = 0; at < size; at += 1) find('0')
  })
})

it('after any sequence of holds and notes, no entry is found that a later note named', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('hold' as const), token: fc.nat(5), user: fc.nat(2) }),
    fc.record({ kind: fc.constant('note' as const), note: fc.constantFrom('s:0', 's:1', 'u:0', 'u:1', '*', 'r') }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { cache } = open({ limit: 4 })
      const expected = new Map<string, { note: string; user: string }>()
      for (const one of steps) {
        if (one.kind === 'hold') {
          const facts = { note: `s:${one.token}`, user: String(one.user) }
          cache.hold(`t${one.token}`, held('x', { note: facts.note, userId: facts.user as UserId }), cache.mark())
          expected.set(`t${one.token}`, facts)
        } else {
          cache.apply(one.note)
          for (const [token, { note, user }] of expected)
            if (one.note === '*' || one.note === note || one.note === `u:${user}`) expected.delete(token)
        }
        for (let token = 0; token <= 5; token += 1)
          if (cache.find(`t${token}`, NOW) !== undefined) expect(expected.has(`t${token}`)).toBe(true)
      }
    }),
  )
})

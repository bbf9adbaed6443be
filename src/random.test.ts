import { describe, expect, it } from 'vitest'
import { systemRandom } from './random.ts'

describe('system random', () => {
  it('gives as many bytes as asked, on both sides of its pool', () => {
    for (const length of [0, 1, 16, 32, 64, 65, 4096, 10_000]) expect(systemRandom.bytes(length)).toHaveLength(length)
  })

  it('never gives the same bytes twice, nor bytes that were wiped', () => {
    const seen = new Set(Array.from({ length: 20_000 }, () => systemRandom.bytes(16).toString('hex')))
    expect(seen.size).toBe(20_000)
    expect(seen).not.toContain('00'.repeat(16))
  })

  it('hands out copies: writing into one changes no other', () => {
    const one = systemRandom.bytes(32)
    const other = systemRandom.bytes(32)
    const before = other.toString('hex')
    one.fill(0xff)
    expect(other.toString('hex')).toBe(before)
  })
})

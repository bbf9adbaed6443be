import { describe, expect, test } from 'vitest'
import { systemRandom } from './random.ts'

describe('system random', () => {
  test('returns the requested number of bytes, from its pool and beyond its size', () => {
    for (const length of [0, 1, 16, 32, 64, 65, 4096, 10_000]) expect(systemRandom.bytes(length)).toHaveLength(length)
  })

  test('returns no bytes twice, and none that were wiped', () => {
    const seen = new Set(Array.from({ length: 20_000 }, () => systemRandom.bytes(16).toString('hex')))
    expect(seen.size).toBe(20_000)
    expect(seen).not.toContain('00'.repeat(16))
  })

  test('returns copies: writing into one does not change another', () => {
    const bytes = systemRandom.bytes(32)
    const other = systemRandom.bytes(32)
    const before = other.toString('hex')
    bytes.fill(0xff)
    expect(other.toString('hex')).toBe(before)
  })
})

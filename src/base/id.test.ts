import { describe, expect, test } from 'vitest'
import { buildIdMaker, isUuid } from './id.ts'
import { systemRandom } from './random.ts'

function makeAt(times: number[]): string[] {
  let at = 0
  const maker = buildIdMaker({ now: () => times[at++]! }, systemRandom)
  return times.map(() => maker.next<'test'>())
}

describe('ids', () => {
  test('are UUIDs of version 7 in lower case that begin with the time', () => {
    const [id] = makeAt([0x0192_a1b2_c3d4])
    expect(id).toMatch(/^0192a1b2-c3d4-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(isUuid(id!)).toBe(true)
  })

  test('increase within a millisecond, after an overflow of the counter, and when the clock steps back', () => {
    const within = Array.from({ length: 5_000 }, () => 1_000)
    const ids = makeAt([...within, 400, 400, 999, 1_002, 1_003])
    expect([...ids].sort()).toEqual(ids)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('are valid only in lower case and in full length', () => {
    expect(isUuid('0192A1B2-c3d4-7000-8000-000000000000')).toBe(false)
    expect(isUuid('0192a1b2-c3d4-7000-8000-00000000000')).toBe(false)
    expect(isUuid('0192a1b2-c3d4-7000-8000-000000000000\n')).toBe(false)
  })
})

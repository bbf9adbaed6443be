import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decideRoom, type InFlight } from './room.ts'

const room = (concurrency: number, inFlight: Partial<InFlight>) =>
  decideRoom(concurrency, { slow: 0, late: 0, answering: 0, ...inFlight })

const CONCURRENCY = fc.integer({ min: 1, max: 300 })
const IN_FLIGHT = fc.record({ slow: fc.nat(900), late: fc.nat(900), answering: fc.nat(900) })

describe('decideRoom', () => {
  test.each([
    ['late ones hold every slot', { late: 100 }, { fastSlots: 100, isCrowded: true }],
    ['late ones hold a quarter', { late: 25, answering: 75 }, { fastSlots: 0, isCrowded: false }],
    ['late ones hold more than a quarter', { late: 26, answering: 74 }, { fastSlots: 26, isCrowded: true }],
    ['a quarter is free', { late: 75 }, { fastSlots: 25, isCrowded: false }],
    ['less than a quarter is free', { late: 75, answering: 1 }, { fastSlots: 99, isCrowded: true }],
    ['nobody is late', { answering: 100 }, { fastSlots: 0, isCrowded: false }],
    ['slow ones have slots of their own', { slow: 10, late: 20 }, { fastSlots: 80, slowSlots: 15, isCrowded: false }],
  ])('of 100 slots, where %s', (_what, inFlight, expected) => {
    expect(room(100, inFlight)).toMatchObject(expected)
  })

  test('leaves a slot beside late attempts however few slots there are', () => {
    for (const concurrency of [1, 2, 3, 4, 5])
      expect(room(concurrency, { late: concurrency })).toMatchObject({ fastSlots: concurrency, isCrowded: true })
  })

  test('never leaves groups that answer without slots for late ones', () => {
    const keeps = (concurrency: number, inFlight: InFlight) => {
      const { slow, late, answering } = inFlight
      // More late ones than there are slots were not let in by it, and the bound of all POSTs holds above all.
      fc.pre(late <= concurrency && slow + late + answering <= 3 * concurrency)
      const { fastSlots } = decideRoom(concurrency, inFlight)
      expect(fastSlots).toBeGreaterThanOrEqual(Math.min(0.25 * concurrency, 0.75 * concurrency - answering))
    }
    fc.assert(fc.property(CONCURRENCY, IN_FLIGHT, keeps))
  })

  test('is at least the room that there would be if nobody were late', () => {
    const isMore = (concurrency: number, inFlight: InFlight) => {
      const { slow, late, answering } = inFlight
      const unjudged = decideRoom(concurrency, { slow, late: 0, answering: answering + late })
      const judged = decideRoom(concurrency, inFlight)
      expect(judged.fastSlots).toBeGreaterThanOrEqual(unjudged.fastSlots)
      expect(judged.slowSlots).toBe(unjudged.slowSlots)
    }
    fc.assert(fc.property(CONCURRENCY, IN_FLIGHT, isMore))
  })

  test('lets in twice the concurrency beside slow attempts, and four times in all', () => {
    const isBound = (concurrency: number, inFlight: InFlight) => {
      const { slow, late, answering } = inFlight
      const { fastSlots, slowSlots } = decideRoom(concurrency, inFlight)
      expect(fastSlots === 0 || late + answering + fastSlots <= 2 * concurrency).toBe(true)
      const total = slow + late + answering
      for (const slots of [fastSlots, slowSlots]) expect(slots === 0 || total + slots <= 4 * concurrency).toBe(true)
    }
    fc.assert(fc.property(CONCURRENCY, IN_FLIGHT, isBound))
  })
})

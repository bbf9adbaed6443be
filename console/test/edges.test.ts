import { describe, expect, test } from 'vitest'
import { type Extent, listHiddenSides } from '../src/parts/scroll/edges.ts'

const FITTING: Extent = {
  ...{ scrollLeft: 0, scrollTop: 0, scrollWidth: 300, scrollHeight: 200, clientWidth: 300, clientHeight: 200 },
}

const sidesOf = (extent: Partial<Extent>, isRightToLeft = false) => [
  ...listHiddenSides({ ...FITTING, ...extent }, isRightToLeft),
]

describe('a region shows that there is more', () => {
  test('nowhere where everything fits, and not for a rounding', () => {
    expect(sidesOf({})).toEqual([])
    expect(sidesOf({ scrollWidth: 301, scrollHeight: 201, scrollTop: 0.6, scrollLeft: 0.4 })).toEqual([])
  })

  test.each([
    [0, ['right']],
    [50, ['left', 'right']],
    [100, ['left']],
  ])('at the sides across which it scrolls, at %i of 100 px', (scrollLeft, sides) => {
    expect(sidesOf({ scrollWidth: 400, scrollLeft })).toEqual(sides)
  })

  test.each([
    [0, ['left']],
    [-50, ['left', 'right']],
    [-100, ['right']],
  ])('at the other ones from right to left, at %i of 100 px', (scrollLeft, sides) => {
    expect(sidesOf({ scrollWidth: 400, scrollLeft }, true)).toEqual(sides)
  })

  test.each([
    [0, ['bottom']],
    [40, ['top', 'bottom']],
    [100, ['top']],
  ])('above and below, at %i of 100 px', (scrollTop, sides) => {
    expect(sidesOf({ scrollHeight: 300, scrollTop })).toEqual(sides)
  })
})

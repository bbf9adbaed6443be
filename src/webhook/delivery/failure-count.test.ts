import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  AUTO_DISABLE_AFTER_FAILURES,
  AUTO_DISABLE_REASON,
  type CountedEnd,
  countFailures,
  orderSteps,
} from './failure-count.ts'

type Step = 'reset' | 'add' | 'keep'

const active = (consecutiveFailures: number) => ({ isActived: true, consecutiveFailures })
const times = (count: number, step: Step) => Array.from({ length: count }, () => step)

describe('countFailures', () => {
  test('disables at twenty, under the reason of the contract', () => {
    expect(AUTO_DISABLE_AFTER_FAILURES).toBe(20)
    expect(AUTO_DISABLE_REASON).toBe('consecutive-failures')
  })

  test('does not disable at the 19th failure', () => {
    expect(countFailures(active(18), ['add'])).toEqual({
      consecutiveFailures: 19,
      disable: false,
      notices: [],
      mails: [],
    })
  })

  test('disables at the 20th failure', () => {
    expect(countFailures(active(19), ['add'])).toEqual({
      consecutiveFailures: 20,
      disable: true,
      notices: ['webhook.auto-disable'],
      mails: ['disabled'],
    })
  })

  test('does not disable an inactive webhook a second time at the 21st', () => {
    expect(countFailures({ isActived: false, consecutiveFailures: 20 }, ['add'])).toEqual({
      consecutiveFailures: 21,
      disable: false,
      notices: [],
      mails: [],
    })
  })

  test('disables once when one batch brings the count past twenty', () => {
    expect(countFailures(active(0), times(25, 'add'))).toEqual({
      consecutiveFailures: 25,
      disable: true,
      notices: ['webhook.failing', 'webhook.failing', 'webhook.auto-disable'],
      mails: ['failing', 'disabled'],
    })
  })

  test('disables an active webhook whose count was at twenty already', () => {
    expect(countFailures(active(20), ['add'])).toMatchObject({ consecutiveFailures: 21, disable: true })
  })

  test.each([
    [8, []],
    [9, ['webhook.failing']],
    [10, []],
    [13, []],
    [14, ['webhook.failing']],
    [15, []],
  ])('after %d failures one more tells %j, of an active webhook alone', (before, notices) => {
    const counted = { consecutiveFailures: before + 1 }
    expect(countFailures(active(before), ['add'])).toMatchObject({ ...counted, notices })
    const inactive = { ...active(before), isActived: false }
    expect(countFailures(inactive, ['add'])).toMatchObject({ ...counted, notices: [] })
  })

  test.each([
    [0, []],
    [9, []],
    [10, ['webhook.recovered']],
    [19, ['webhook.recovered']],
  ])('a success after %d failures sets the count to 0 and tells %j', (before, notices) => {
    const mails = notices.length > 0 ? ['recovered'] : []
    expect(countFailures(active(before), ['reset'])).toEqual({ consecutiveFailures: 0, disable: false, notices, mails })
  })

  test.each([
    [12, 0, 0, ['webhook.recovered']],
    [12, 9, 9, ['webhook.recovered']],
    [12, 10, 10, []],
    [12, 13, 12, []],
    [9, 3, 3, []],
  ])('after %d failures a success before %d of them leaves %d and tells %j', (before, left, kept, notices) => {
    const mails = notices.length > 0 ? ['recovered'] : []
    const decided = { consecutiveFailures: kept, disable: false, notices, mails }
    expect(countFailures(active(before), [{ left }])).toEqual(decided)
  })

  test('of what follows in the batch that disables nothing is told', () => {
    const decided = countFailures(active(0), [...times(20, 'add'), 'reset', ...times(15, 'add')])
    expect(decided).toEqual({
      ...{ consecutiveFailures: 15, disable: true },
      ...{ notices: ['webhook.failing', 'webhook.failing', 'webhook.auto-disable'], mails: ['failing', 'disabled'] },
    })
  })

  test('a success of a webhook that stays disabled is no recovery', () => {
    const disabled = { isActived: false, consecutiveFailures: 20 }
    expect(countFailures(disabled, ['reset'])).toEqual({
      ...{ consecutiveFailures: 0, disable: false },
      ...{ notices: [], mails: [] },
    })
  })

  test.each([
    [13, []],
    [14, ['failing']],
    [15, []],
  ])('after %d failures one more is mailed as %j, of an active webhook alone', (before, mails) => {
    expect(countFailures(active(before), ['add'])).toMatchObject({ mails })
    expect(countFailures({ ...active(before), isActived: false }, ['add'])).toMatchObject({ mails: [] })
  })

  test('counts anew after a success between two runs of 19', () => {
    const steps: Step[] = [...times(19, 'add'), 'reset', ...times(19, 'add')]
    expect(countFailures(active(0), steps)).toMatchObject({ consecutiveFailures: 19, disable: false })
  })

  test('leaves the count alone for attempts that count for nothing', () => {
    expect(countFailures(active(19), times(5, 'keep'))).toEqual({
      consecutiveFailures: 19,
      disable: false,
      notices: [],
      mails: [],
    })
    expect(countFailures(active(0), [])).toEqual({ consecutiveFailures: 0, disable: false, notices: [], mails: [] })
  })

  test('comes to the same however the steps are batched, until it disables', () => {
    const steps = fc.array(fc.constantFrom<Step>('reset', 'add', 'add', 'add', 'keep'), { maxLength: 60 })
    fc.assert(
      fc.property(steps, fc.nat({ max: 60 }), (all, cut) => {
        const whole = countFailures(active(0), all)
        const first = countFailures(active(0), all.slice(0, cut))
        const state = { isActived: !first.disable, consecutiveFailures: first.consecutiveFailures }
        const second = countFailures(state, all.slice(cut))
        expect(second.consecutiveFailures).toBe(whole.consecutiveFailures)
        expect(first.disable || second.disable).toBe(whole.disable)
        expect([...first.notices, ...second.notices]).toEqual(whole.notices)
        expect([...first.mails, ...second.mails]).toEqual(whole.mails)
      }),
    )
  })
})

test('what was recorded sooner counts by its end: a failure before a success adds nothing, one of the same instant does', () => {
  const at = (ms: number) => new Date(ms)
  const end = (ms: number, failureCount: CountedEnd['failureCount']) => ({ endedAt: at(ms), failureCount })
  const ended = [end(4, 'reset'), end(3, 'add'), end(2, 'add'), end(1, 'add'), end(5, 'keep'), end(0, 'keep')]
  const earlier = { lastSuccessAt: at(2), failuresAt: [3, 4, 5, 6].map(at) }
  expect(orderSteps(ended, earlier)).toEqual(['keep', 'keep', 'add', 'add', { left: 2 }, 'keep'])
  expect(orderSteps([end(1, 'add')], { lastSuccessAt: null, failuresAt: [] })).toEqual(['add'])
})

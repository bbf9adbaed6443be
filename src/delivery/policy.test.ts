import { describe, expect, test } from 'vitest'
import { listBlocked, listUnready, type Room } from './policy.ts'

const room = (change: Partial<Room> = {}): Room => ({
  fastSlots: 10,
  slowSlots: 1,
  slowGroups: [],
  lateGroups: [],
  inFlight: new Map(),
  perGroup: 2,
  hasPeers: false,
  ...change,
})

describe('listBlocked', () => {
  test('names the groups that are at their cap, and those above it', () => {
    const inFlight = new Map([
      ['below', 1],
      ['at', 2],
      ['above', 3],
    ])
    expect(listBlocked(room({ inFlight }))).toEqual(['at', 'above'])
  })

  test('names slow groups when no slow slot is free, each once', () => {
    const inFlight = new Map([['both', 2]])
    const slowGroups = ['both', 'slow']
    expect(listBlocked(room({ inFlight, slowGroups }))).toEqual(['both'])
    expect(listBlocked(room({ inFlight, slowGroups, slowSlots: 0 }))).toEqual(['both', 'slow'])
  })

  test('names late groups, whatever slots are free, each once', () => {
    const inFlight = new Map([['both', 2]])
    expect(listBlocked(room({ inFlight, lateGroups: ['both', 'late'] }))).toEqual(['both', 'late'])
  })

  test('names none for want of fast slots: they are of all groups', () => {
    expect(listBlocked(room({ fastSlots: 0 }))).toEqual([])
  })
})

describe('listUnready', () => {
  test('names slow and late groups: their rows wait, though slow slots are free', () => {
    expect(listUnready(room({ slowGroups: ['slow'], lateGroups: ['late'] }))).toEqual(['slow', 'late'])
  })
})

import { expect, test } from 'vitest'
import type { AccountId } from '../../../base/id.ts'
import type { AccountLimits } from './account-limit.store.ts'
import { buildLimitCache } from './limit-cache.ts'

function open(limit?: number) {
  const state = { isProven: true, reads: 0 }
  const cache = buildLimitCache(() => state.isProven, limit)
  const read = async (): Promise<AccountLimits> => {
    state.reads += 1
    return { webhooks: state.reads, subscriptions: 0, published_per_minute: 0, replays_per_minute: 0 }
  }
  return { cache, state, find: async (id: string) => (await cache.find(id as AccountId, read)).webhooks }
}

test('the limits of an account are read once while notes are proven to arrive, and else each time', async () => {
  const { find, state } = open()
  expect([await find('a'), await find('a')]).toEqual([1, 1])
  state.isProven = false
  expect(await find('a')).toBe(2)
})

test('a note drops the limits of the account that it names, and a star all', async () => {
  const { cache, find } = open()
  await find('a')
  await find('b')
  cache.apply('l:a')
  cache.apply('u:b')
  expect([await find('a'), await find('b')]).toEqual([3, 2])
  cache.apply('*')
  expect(await find('b')).toBe(4)
})

test('limits that change while they are read are not kept', async () => {
  const { cache, find } = open()
  await cache.find('a' as AccountId, async () => {
    cache.apply('l:a')
    return { webhooks: 99, subscriptions: 0, published_per_minute: 0, replays_per_minute: 0 }
  })
  expect(await find('a')).toBe(1)
})

test('beyond the size of the cache the account that was used longest ago is dropped', async () => {
  const { find } = open(2)
  expect([await find('a'), await find('b'), await find('a')]).toEqual([1, 2, 1])
  expect([await find('c'), await find('a'), await find('b')]).toEqual([3, 1, 4])
})

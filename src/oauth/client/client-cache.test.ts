import type { AdapterPayload } from 'oidc-provider'
import { expect, test } from 'vitest'
import { buildClientCache } from './client-cache.ts'

function open(limit?: number) {
  const state = { isProven: true, reads: 0 }
  const cache = buildClientCache(() => state.isProven, limit)
  const read = async (): Promise<AdapterPayload> => {
    state.reads += 1
    return { client_id: `read ${state.reads}` }
  }
  return { cache, state, find: async (id: string) => (await cache.find(id, read))?.client_id }
}

test('a client is read once while notes are proven to arrive, and else each time', async () => {
  const { find, state } = open()
  expect([await find('a'), await find('a')]).toEqual(['read 1', 'read 1'])
  state.isProven = false
  expect(await find('a')).toBe('read 2')
})

test('a note drops the client that it names, and a star all', async () => {
  const { cache, find } = open()
  await find('a')
  await find('b')
  cache.apply('c:a')
  cache.apply('u:b')
  expect([await find('a'), await find('b')]).toEqual(['read 3', 'read 2'])
  cache.apply('*')
  expect(await find('b')).toBe('read 4')
})

test('a client that changes while it is read is not kept', async () => {
  const { cache, find } = open()
  await cache.find('a', async () => {
    cache.apply('c:a')
    return { client_id: 'old' }
  })
  expect(await find('a')).toBe('read 1')
})

test('a client that does not exist is not kept', async () => {
  const { cache, find } = open()
  expect(await cache.find('a', async () => undefined)).toBeUndefined()
  expect(await find('a')).toBe('read 1')
})

test('beyond the limit the client that was used longest ago is dropped', async () => {
  const { find } = open(2)
  expect([await find('a'), await find('b'), await find('a')]).toEqual(['read 1', 'read 2', 'read 1'])
  expect([await find('c'), await find('a'), await find('b')]).toEqual(['read 3', 'read 1', 'read 4'])
})

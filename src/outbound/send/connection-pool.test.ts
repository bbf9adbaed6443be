import { expect, test } from 'vitest'
import { buildConnectionPool } from './connection-pool.ts'

const calm = { stalledMs: () => 0, stop: () => {} }

// Nothing is dialled here: a connection dials with its first request.
function build(perTarget: number) {
  let nowMs = 0
  const pool = buildConnectionPool(
    { connectTimeoutMs: 1_000, now: () => nowMs, watch: calm },
    { perTarget, total: 100 },
  )
  const target = {
    origin: 'http://127.0.0.1:1',
    hostname: '127.0.0.1',
    addresses: [{ address: '127.0.0.1', family: 4 }],
  } as const
  const take = () => pool.take({ ...target, addresses: [...target.addresses] })
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { pool, take, pass }
}

test('connections too old to be reused give their places to those used since', () => {
  const { pool, take, pass } = build(2)
  for (const old of [take(), take()]) pool.giveBack(old)
  pass(60_000)
  const fresh = take()
  pool.giveBack(fresh)
  expect(pool.idleCount()).toBe(2)
  expect(take()).toBe(fresh)
  pool.clear()
})

test('the key does not depend on the order of the addresses', () => {
  const { pool } = build(2)
  const of = (...addresses: string[]) => ({
    origin: 'http://receiver.example',
    hostname: 'receiver.example',
    addresses: addresses.map((address) => ({ address, family: 4 as const })),
  })
  const taken = pool.take(of('127.0.0.1', '127.0.0.2'))
  pool.giveBack(taken)
  expect(pool.take(of('127.0.0.1'))).not.toBe(taken)
  expect(pool.take(of('127.0.0.2', '127.0.0.1'))).toBe(taken)
  pool.clear()
})

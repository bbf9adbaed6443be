import { expect, test } from 'vitest'
import { cpuPerDelivery, describeCost, explainCost, perDelivery } from './delivery-cost.ts'

const cost = {
  delivered: 100,
  usage: { processMs: 200, postgresMs: 100, statements: 600, walBytes: 250_000, stolenMs: 10 },
  wallMs: 1_000,
  statements: [
    { query: 'begin', calls: 100, totalMs: 1 },
    { query: 'insert   into\n t', calls: 100, totalMs: 50 },
    { query: 'never called', calls: 0, totalMs: 90 },
  ],
}

test('each delivery takes its share of the whole', () => {
  expect(perDelivery(cost, 'statements')).toBe(6)
  expect(cpuPerDelivery(cost)).toBe(3)
  expect(describeCost(cost)).toContain('2.00 ms of CPU in the service, 1.00 ms in PostgreSQL, 6.00 statements, 2.50 kB')
})

test('a share is undefined where nothing was counted or nothing was delivered', () => {
  expect(cpuPerDelivery({ ...cost, usage: { ...cost.usage, postgresMs: undefined } })).toBeUndefined()
  expect(perDelivery({ ...cost, delivered: 0 }, 'statements')).toBeUndefined()
})

test('the explanation lists statements that ran, the longest first', () => {
  const [cores, ...statements] = explainCost(cost)
  expect(cores).toBe('Of one core the service used 20 %, PostgreSQL 10 %, other machines of the host 1 %.')
  expect(statements).toEqual([
    '0.500 ms a delivery in 1.000 calls: insert into t',
    '0.010 ms a delivery in 1.000 calls: begin',
  ])
})

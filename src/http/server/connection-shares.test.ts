import { expect, test } from 'vitest'
import { buildConnectionShares, type SharedConnection } from './connection-shares.ts'

/** Connections of a process that has at most 400, and so 100 of one address. */
function open(trusted: string[] = []) {
  const shares = buildConnectionShares({ limit: 400, isTrusted: (address) => trusted.includes(address) })
  const closed: string[] = []
  let count = 0
  const connect = (address: string, isIdle = true) => {
    const name = `${address} ${count}`
    count += 1
    const connection: SharedConnection = { address, isIdle: () => isIdle, close: () => closed.push(name) }
    return { name, connection, isTaken: shares.add(connection) }
  }
  const connectMany = (many: number, addressOf: (step: number) => string, isIdle = true) =>
    Array.from({ length: many }, (_, step) => connect(addressOf(step), isIdle))
  return { shares, closed, connect, connectMany }
}

test('one address has a quarter of all connections; one more closes its oldest idle one', () => {
  const { closed, connect, connectMany } = open()
  const other = connect('10.0.0.2')
  const [first, second] = connectMany(100, () => '10.0.0.1')
  expect(closed).toEqual([])
  expect(connect('10.0.0.1').isTaken).toBe(true)
  expect(connect('10.0.0.1').isTaken).toBe(true)
  expect(closed).toEqual([first?.name, second?.name])
  expect(other.isTaken).toBe(true)
})

test('one address whose connections all have a request gets no more, and others do', () => {
  const { closed, connect, connectMany } = open()
  connectMany(100, () => '10.0.0.1', false)
  expect(connect('10.0.0.1').isTaken).toBe(false)
  expect(connect('10.0.0.2').isTaken).toBe(true)
  expect(closed).toEqual([])
})

test('an IPv6 address is its /64, and a mapped one its IPv4 address', () => {
  const { closed, connect, connectMany } = open()
  connectMany(101, (step) => `2001:db8:1:1::${step.toString(16)}`)
  expect(closed).toHaveLength(1)
  connectMany(100, () => '::ffff:10.0.0.1')
  connect('10.0.0.1')
  expect(closed).toHaveLength(2)
})

test('many addresses of one network leave room for others: its oldest idle connection gives way', () => {
  const { closed, connect, connectMany } = open()
  const [quiet] = connectMany(5, (step) => `10.9.${step}.1`)
  const [first] = connectMany(355, (step) => `2001:db8:1:${step.toString(16)}::1`)
  expect(closed).toEqual([])
  expect(connect('10.10.0.1').isTaken).toBe(true)
  expect(closed).toEqual([first?.name])
  connectMany(300, (step) => `2001:db8:1:${(step + 1_000).toString(16)}::1`)
  expect(closed).toHaveLength(301)
  expect(closed).not.toContain(quiet?.name)
})

test('a trusted proxy has no limit of its own', () => {
  const { closed, connectMany } = open(['10.0.0.1'])
  expect(connectMany(350, () => '10.0.0.1').every(({ isTaken }) => isTaken)).toBe(true)
  expect(closed).toEqual([])
})

test('a connection that ends is counted no more', () => {
  const { shares, closed, connect, connectMany } = open()
  const [first] = connectMany(100, () => '10.0.0.1')
  if (first) shares.drop(first.connection)
  if (first) shares.drop(first.connection)
  connect('10.0.0.1')
  expect(closed).toEqual([])
  connect('10.0.0.1')
  expect(closed).toHaveLength(1)
})

import { describe, expect, test } from 'vitest'
import { buildPeerList } from './fleet-peers.ts'

const row = (seenAtMs: number, isListening = true) => [{ id: 'p', seenAtMs, isListening, isOnBus: false, carried: 0 }]

function build() {
  const log: string[] = []
  const list = buildPeerList({
    onPeer: (process) => log.push(`+${process}`),
    onPeerGone: (process) => log.push(`-${process}`),
  })
  return { list, log }
}

describe('another process', () => {
  test('is known by its lock or by a message, not by its row alone', () => {
    const { list, log } = build()
    list.see(row(1, false))
    expect(log).toEqual([])
    list.see(row(1))
    list.meet('q')
    expect(log).toEqual(['+p', '+q'])
  })

  test('has ended after two looks without its lock, and not after one', () => {
    const { list, log } = build()
    list.see(row(1))
    list.see(row(2, false))
    list.see(row(3))
    list.see(row(4, false))
    expect(log).toEqual(['+p'])
    list.see(row(4, false))
    expect(log).toEqual(['+p', '-p'])
  })

  test('has ended after two looks without its row', () => {
    const { list, log } = build()
    list.see(row(1))
    list.see([])
    expect(list.size()).toBe(1)
    list.see([])
    expect(log).toEqual(['+p', '-p'])
  })

  test('has ended after 15 looks without a sign of life, and is known again with the next one', () => {
    const { list, log } = build()
    list.see(row(1))
    for (let look = 1; look < 15; look += 1) list.see(row(1))
    expect(log).toEqual(['+p'])
    for (let look = 0; look < 5; look += 1) list.see(row(1))
    expect(log).toEqual(['+p', '-p'])
    list.see(row(2))
    expect(log).toEqual(['+p', '-p', '+p'])
  })

  test('that returns is read on from its last message', () => {
    const { list } = build()
    list.see(row(1))
    list.meet('p')!.last = 7
    list.see(row(2, false))
    list.see(row(3, false))
    expect(list.size()).toBe(0)
    list.see(row(4))
    expect(list.meet('p')?.last).toBe(7)
  })

  test('that has ended is written to for 60 looks more, one that said that it stops is not', () => {
    const { list } = build()
    list.see(row(1))
    list.see([])
    list.see([])
    expect([list.size(), list.hasReaders()]).toEqual([0, true])
    for (let look = 1; look < 60; look += 1) list.see([])
    expect(list.hasReaders()).toBe(true)
    list.see([])
    expect(list.hasReaders()).toBe(false)
    list.see(row(2))
    list.end('p')
    expect(list.hasReaders()).toBe(false)
  })

  test('that said that it stops is not known again while the database still shows it', () => {
    const { list, log } = build()
    list.see(row(1))
    list.end('p')
    list.see(row(1))
    list.see(row(2))
    expect(list.meet('p')).toBeUndefined()
    expect(log).toEqual(['+p', '-p'])
    expect(list.list()).toEqual([])
  })
})

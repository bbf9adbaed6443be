import { expect, test } from 'vitest'
import { openDispatcher, rest } from '../../../test/harness/delivery/dispatcher-in-memory.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import { JOIN_WAIT_MS } from '../worker-lease.ts'
import { POLL_MS } from './waiting.ts'

test('a dispatcher whose slots are taken asks the queue nothing, and claims when an eighth of them is free', async () => {
  await using t = openDispatcher({ concurrency: 16 })
  t.add(20)
  t.dispatcher.notify()
  await waitFor('attempts', () => t.started().length === 16)
  await rest()
  const before = { ...t.asked }
  t.dispatcher.notify()
  await rest()
  expect(t.asked).toEqual(before)
  await t.end('row 1')
  expect(t.started()).toHaveLength(16)
  await t.end('row 2')
  expect(t.started()).toHaveLength(18)
  expect(t.asked).toEqual({ ...before, claims: before.claims + 1 })
})

test('the end of an attempt is worth no claim while slots were free and nothing more was due', async () => {
  await using t = openDispatcher()
  const ids = t.add(3)
  t.dispatcher.notify()
  await waitFor('attempts', () => t.started().length === 3)
  await rest()
  const before = { ...t.asked }
  for (const id of ids) await t.end(id)
  expect(t.asked).toEqual(before)
  t.clock.advance(POLL_MS)
  await rest()
  expect(t.asked).toEqual({ claims: before.claims + 1, dueTimes: before.dueTimes + 1 })
})

test('slots that were full and have nothing waiting any more are worth no claim either', async () => {
  await using t = openDispatcher({ concurrency: 2 })
  const ids = t.add(2)
  t.dispatcher.notify()
  await waitFor('attempts', () => t.started().length === 2)
  await rest()
  await t.end(ids[0]!)
  const before = { ...t.asked }
  await t.end(ids[1]!)
  expect(t.asked).toEqual(before)
})

test('the end of an attempt of a group at its cap is worth a claim at once: rows of it may wait unseen', async () => {
  await using t = openDispatcher({ perGroup: 2 })
  const ids = t.add(3, { group: 'capped' })
  t.dispatcher.notify()
  await waitFor('attempts', () => t.started().length === 2)
  await rest()
  await t.end(ids[0]!)
  expect(t.started()).toEqual(ids)
})

test('the end of an attempt of a slow group is worth a claim at once', async () => {
  await using t = openDispatcher({ concurrency: 4 })
  const [slow] = t.add(1, { group: 'slow' })
  t.dispatcher.notify()
  await waitFor('an attempt', () => t.started().length === 1)
  t.clock.advance(2_001)
  await rest()
  const [other] = t.add(1, { group: 'slow' })
  await t.end(slow!)
  expect(t.started()).toContain(other)
})

test('a slow group is served while no fast slot is free', async () => {
  await using t = openDispatcher({ concurrency: 8 })
  const [slow] = t.add(1, { group: 'slow' })
  t.dispatcher.notify()
  await waitFor('an attempt', () => t.started().length === 1)
  t.clock.advance(2_001)
  t.add(8)
  t.dispatcher.notify()
  await waitFor('attempts', () => t.started().length === 9)
  await rest()
  const [other] = t.add(1, { group: 'slow' })
  t.dispatcher.notify()
  await waitFor('an attempt of the slow group', () => t.started().includes(other!))
  expect(t.started()).toContain(slow)
})

test('a row that is due soon is claimed at its very millisecond, and the poll finds one that came unseen', async () => {
  await using t = openDispatcher()
  t.add(1, { inMs: 300 })
  t.dispatcher.notify()
  await rest()
  t.clock.advance(299)
  await rest()
  expect(t.started()).toEqual([])
  t.clock.advance(1)
  await rest()
  expect(t.started()).toEqual(['row 1'])
  t.add(1)
  t.clock.advance(POLL_MS - 1)
  await rest()
  expect(t.started()).toEqual(['row 1'])
  t.clock.advance(1)
  await rest()
  expect(t.started()).toEqual(['row 1', 'row 2'])
})

test('a row that is due and locked by another worker is asked for once a poll, not again and again', async () => {
  await using t = openDispatcher()
  const [id] = t.add(1)
  t.locked.add(id!)
  t.dispatcher.notify()
  await rest()
  const before = t.asked.claims
  t.clock.advance(POLL_MS - 1)
  await rest()
  expect(t.asked.claims).toBe(before)
  t.locked.clear()
  t.clock.advance(1)
  await rest()
  expect(t.started()).toEqual([id])
})

test('the last free slot is used, and each end of an attempt says that there is room', async () => {
  await using t = openDispatcher({ concurrency: 4 })
  const ids = t.add(3)
  t.dispatcher.notify()
  await waitFor('attempts', () => t.started().length === 3)
  await rest()
  t.add(1)
  t.dispatcher.notify()
  await rest()
  expect(t.started()).toHaveLength(4)
  await t.end(ids[0]!)
  await t.end(ids[1]!)
  expect(t.rooms()).toBe(2)
})

test('after an attempt that was made, a fault of the process waits for the shortest time again', async () => {
  await using t = openDispatcher()
  const [first, second] = t.add(2)
  t.dispatcher.notify()
  await waitFor('attempts', () => t.started().length === 2)
  await t.fail(first!, new OwnFault('EMFILE'))
  expect(t.released).toEqual([{ id: first, inMs: 1_000 }])
  const [third] = t.add(1)
  t.clock.advance(1_000)
  await rest()
  await t.end(second!)
  await t.fail(third!, new OwnFault('EMFILE'))
  expect(t.released.at(-1)).toEqual({ id: third, inMs: 1_000 })
})

test('a process that lacks what every attempt needs offers no slot, fast or slow, until its wait is over', async () => {
  await using t = openDispatcher()
  const [first] = t.add(1)
  t.dispatcher.notify()
  await waitFor('an attempt', () => t.started().length === 1)
  await t.fail(first!, new OwnFault('EMFILE'))
  t.add(1)
  t.dispatcher.notify()
  await rest()
  expect(t.started()).toEqual([first])
  expect(t.dispatcher.measureRoom()).toMatchObject({ fastSlots: 0, slowSlots: 0 })
  t.clock.advance(1_000)
  await rest()
  expect(t.started()).toHaveLength(2)
  expect(t.dispatcher.measureRoom().slowSlots).toBeGreaterThan(0)
})

test('a claim whose result was recorded is no longer held: one that is found again is made again', async () => {
  await using t = openDispatcher()
  const [id] = t.add(1)
  t.dispatcher.notify()
  await waitFor('an attempt', () => t.started().length === 1)
  await t.end(id!)
  await waitFor('its record', () => t.settled.length === 1)
  t.dispatcher.expectLeak()
  t.lost.claims.set('worker-a', [{ id: id!, fence: 1 }])
  t.clock.advance(POLL_MS)
  await rest()
  expect(t.settled).toEqual([id, id])
})

test('claims of workers that are gone are made again at once, and logged as interrupted', async () => {
  await using t = openDispatcher()
  await rest()
  t.lost.workers = ['worker-gone']
  t.lost.claims.set('worker-gone', [{ id: 'lost', fence: 3 }])
  t.clock.advance(POLL_MS)
  await rest()
  expect(t.reclaims).toEqual([
    { workerId: 'worker-gone', claimedBefore: new Date(t.clock.now()), now: new Date(t.clock.now()), limit: 500 },
  ])
  expect(t.settled).toEqual(['lost'])
})

test('after a claim that failed, own claims that nobody holds are looked for at once, for two minutes, and those in flight left alone', async () => {
  await using t = openDispatcher()
  const [held] = t.add(1)
  t.dispatcher.notify()
  await waitFor('an attempt', () => t.started().length === 1)
  await rest()
  t.failClaims(new Error('connection terminated'))
  t.dispatcher.notify()
  await rest()
  t.failClaims()
  t.lost.claims.set('worker-a', [
    { id: held!, fence: 1 },
    { id: 'leaked', fence: 1 },
  ])
  t.clock.advance(POLL_MS)
  await rest()
  expect(t.reclaims.map(({ workerId, claimedBefore }) => [workerId, t.clock.now() - claimedBefore.getTime()])).toEqual([
    ['worker-a', 0],
  ])
  expect(t.settled).toEqual(['leaked'])
  t.lost.claims.clear()
  t.clock.advance(120_000 - POLL_MS - 1)
  await rest()
  expect([t.reclaims.length, t.dispatcher.mayLeak()]).toEqual([2, true])
  t.clock.advance(POLL_MS)
  await rest()
  expect([t.reclaims.length, t.dispatcher.mayLeak()]).toEqual([2, false])
})

test('a worker that joins others claims nothing until they have seen it, and offers no room before', async () => {
  await using t = openDispatcher({ hasPeers: true })
  t.add(1)
  await rest()
  expect([t.asked.claims, t.dispatcher.measureRoom().fastSlots]).toEqual([0, 0])
  t.clock.advance(JOIN_WAIT_MS - 1)
  await rest()
  expect(t.asked.claims).toBe(0)
  t.clock.advance(1)
  await rest()
  expect([t.started(), t.dispatcher.measureRoom().fastSlots]).toEqual([['row 1'], 15])
})

test('a worker that rested joins the others again before it claims', async () => {
  await using t = openDispatcher()
  await rest()
  t.setRested(true)
  const before = t.renewals()
  t.dispatcher.notify()
  await rest()
  expect(t.renewals()).toBe(before + 1)
})

test('nothing is claimed, and no room offered, while the queue is off or the clock is not trusted', async () => {
  await using off = openDispatcher({ isEnabled: false })
  off.add(1)
  off.dispatcher.notify()
  await rest()
  expect([off.asked.claims, off.dispatcher.measureRoom()]).toMatchObject([0, { fastSlots: 0, slowSlots: 0 }])
  await using t = openDispatcher()
  await rest()
  t.setTrusted(false)
  t.add(1)
  const { claims } = t.asked
  t.dispatcher.notify()
  await rest()
  expect([t.asked.claims, t.dispatcher.measureRoom()]).toMatchObject([claims, { fastSlots: 0, slowSlots: 0 }])
  t.setTrusted(true)
  t.dispatcher.notify()
  await rest()
  expect(t.started()).toEqual(['row 1'])
})

test('rows that the router claimed are attempted while it runs, and given back once it stops', async () => {
  await using t = openDispatcher()
  await rest()
  await t.dispatcher.accept([{ id: 'routed', group: 'a', fence: 1 }])
  expect([t.started(), t.dispatcher.inFlight()]).toEqual([['routed'], 1])
  await t.end('routed')
  await t.dispatcher.stop()
  await t.dispatcher.accept([{ id: 'late', group: 'a', fence: 1 }])
  expect([t.started(), t.released]).toEqual([['routed'], [{ id: 'late', inMs: 0 }]])
  expect(t.dispatcher.measureRoom()).toMatchObject({ fastSlots: 0, slowSlots: 0 })
})

test('the end of an attempt is worth no claim while a due row is locked by another worker and slots are free', async () => {
  await using t = openDispatcher()
  const [id, locked] = t.add(2)
  t.locked.add(locked!)
  t.dispatcher.notify()
  await waitFor('an attempt', () => t.started().length === 1)
  await rest()
  const before = { ...t.asked }
  await t.end(id!)
  expect(t.asked).toEqual(before)
})

test('until the claims of a worker that is gone are taken back, others may hold rows: what it published last keeps its order', async () => {
  await using t = openDispatcher()
  await rest()
  expect(t.dispatcher.measureRoom().hasPeers).toBe(false)
  // Another policy of this process has just renewed the lease they share.
  t.lost.workers.push('worker-b')
  expect(t.dispatcher.measureRoom().hasPeers).toBe(true)
  t.lost.claims.set('worker-b', [{ id: 'lost', fence: 1 }])
  t.clock.advance(POLL_MS)
  await rest()
  expect(t.settled).toEqual(['lost'])
  expect(t.dispatcher.measureRoom().hasPeers).toBe(false)
})

test('a worker that came back and is gone again may hold rows again', async () => {
  await using t = openDispatcher()
  t.lost.workers.push('worker-b')
  t.clock.advance(POLL_MS)
  await rest()
  expect(t.dispatcher.measureRoom().hasPeers).toBe(false)
  t.lost.workers.pop()
  t.clock.advance(POLL_MS)
  await rest()
  t.lost.workers.push('worker-b')
  expect(t.dispatcher.measureRoom().hasPeers).toBe(true)
})

test('rows that are claimed while it stops are given back at once, and the queue is asked nothing more', async () => {
  await using t = openDispatcher()
  await rest()
  const unblock = t.holdClaims()
  const [row] = t.add(1)
  t.dispatcher.notify()
  await rest()
  const before = { ...t.asked }
  const stopped = t.dispatcher.stop()
  unblock()
  await stopped
  await rest()
  expect([t.started(), t.released]).toEqual([[], [{ id: row, inMs: 0 }]])
  expect(t.asked).toEqual(before)
})

test('attempts may go on for 6 s while it stops, are interrupted then, and are recorded before it has stopped', async () => {
  await using t = openDispatcher()
  const [row] = t.add(1)
  t.dispatcher.notify()
  await waitFor('an attempt', () => t.started().length === 1)
  let hasStopped = false
  const stopped = t.dispatcher.stop().then(() => {
    hasStopped = true
  })
  await rest()
  t.clock.advance(5_999)
  await rest()
  expect(t.interrupted).toEqual([])
  t.clock.advance(1)
  await rest()
  expect([t.interrupted, hasStopped]).toEqual([[row], false])
  await t.end(row!)
  await stopped
  expect(t.settled).toEqual([row])
})

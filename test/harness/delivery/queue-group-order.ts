import { expect, test } from 'vitest'
import type { Claim, Work } from '../../../src/delivery/policy.ts'
import { buildWorker, idsOf, MINUTE_MS, type QueueUnderTest } from './queue-under-test.ts'

/** Describes what a queue does whose rows of one group are attempted in their order. */
export function describeGroupOrder<C extends Work, E extends Claim, S>(
  open: () => Promise<QueueUnderTest<C, E, S>>,
): void {
  test('gives rows of a group to one worker at a time', async () => {
    await using t = await open()
    const [a, b, group] = [buildWorker(t, 'worker-a'), buildWorker(t, 'worker-b'), await t.addGroup()]
    const ids = await t.addRows(group, { count: 5 })
    const first = await a.claim({ fastSlots: 2 })
    expect(idsOf(first)).toEqual(ids.slice(0, 2))
    expect(await b.claim()).toEqual([])
    expect(idsOf(await a.claim({ fastSlots: 1 }))).toEqual(ids.slice(2, 3))
    await t.queue.settle(await a.reclaim())
    t.clock.advance(MINUTE_MS)
    expect(idsOf(await b.claim())).toEqual(ids)
    expect(await a.claim()).toEqual([])
  })

  test('gives no row of a group before an earlier one that waits for its retry', async () => {
    await using t = await open()
    const [worker, group, other] = [buildWorker(t), await t.addGroup(), await t.addGroup()]
    const [id] = await t.addRows(group)
    await worker.settle(await worker.claim(), 'failed')
    const later = await t.addRows(group, { count: 2 })
    const free = await t.addRows(other)
    expect(idsOf(await worker.claim())).toEqual(free)
    t.clock.set((await t.readRow(id!))!.dueAt!.getTime())
    expect(idsOf(await worker.claim())).toEqual([id, ...later])
  })
}

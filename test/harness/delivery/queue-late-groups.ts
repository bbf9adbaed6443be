import { expect, test } from 'vitest'
import type { Claim, Work } from '../../../src/delivery/policy.ts'
import { buildWorker, countByGroup, MINUTE_MS, type QueueUnderTest } from './queue-under-test.ts'

/** Describes what a claim does with groups that hold slots and do not answer. */
export function describeLateGroups<C extends Work, E extends Claim, S>(
  open: () => Promise<QueueUnderTest<C, E, S>>,
): void {
  test('gets nothing and keeps its place, while the others take every slot', async () => {
    await using t = await open()
    const [worker, late, prompt] = [buildWorker(t), await t.addGroup(), await t.addGroup()]
    await t.addRows(late, { count: 20, dueAt: new Date(t.clock.now() - MINUTE_MS) })
    await t.addRows(prompt, { count: 20 })
    const room = { fastSlots: 10, slowSlots: 2, lateGroups: [late] }
    expect(countByGroup(await worker.claim(room))).toEqual(new Map([[prompt, 10]]))
    expect(countByGroup(await worker.claim({ ...room, lateGroups: [] }))).toEqual(new Map([[late, 10]]))
  })

  test('is not what the worker waits for', async () => {
    await using t = await open()
    const [worker, late] = [buildWorker(t), await t.addGroup()]
    await t.addRows(late)
    expect(await t.queue.nextDueAt(worker.request({ lateGroups: [late] }))).toBeNull()
    expect(await t.queue.nextDueAt(worker.request({}))).toEqual(new Date(t.clock.now()))
  })
}

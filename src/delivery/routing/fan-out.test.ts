import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildProbeDispatcher } from '../../../test/harness/delivery/probe-dispatcher.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { fragment } from '../../postgres/statement/fragment.ts'
import { buildFanOut } from './fan-out.ts'

/** One event was set aside while there are rows; a broken statement divides by zero. */
const writeParts = fragment<{ rows: number; dueAt: Date | null; isBroken: boolean }>(
  'probe',
  `
  probe_reached as (select gen_random_uuid() as event_id, false as is_last where $rows::int > 0),
  probe_opened as (
    select n as id from generate_series(1, $rows::int / case when $isBroken::boolean then 0 else 1 end) n),
  probe_work as (select json_build_array(id) as work from probe_opened),
  probe_next as (select $dueAt::timestamptz as due_at)`,
)

/** A dispatcher of a policy that has `left` rows to write, and what the policy was asked for. */
function buildProbe() {
  const probe = {
    left: 0,
    slots: 0,
    hasRoom: true,
    nextDueAt: null as Date | null,
    limits: [] as number[],
    accepted: [] as unknown[],
    notified: 0,
    leaks: 0,
    isBroken: false,
  }
  const dispatcher = buildProbeDispatcher(probe, {
    name: 'probe',
    buildRouting: () => ({ matched: '', written: { name: '', text: '', values: [] } }),
    buildFanOut: (_request, limit) => {
      probe.limits.push(limit)
      const rows = Math.min(limit, probe.left)
      if (!probe.isBroken) probe.left -= rows
      return writeParts({ rows, dueAt: probe.nextDueAt, isBroken: probe.isBroken })
    },
  })
  return { probe, dispatcher, mutex: dispatcher.mutex }
}

async function openFanOut() {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const { probe, dispatcher, mutex } = buildProbe()
  const fanOut = buildFanOut({ clock, db: database.db, dispatcher })
  return { probe, clock, mutex, fanOut, db: database.db, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

describe('a part of a fan-out', () => {
  test('has as many rows as there are free slots, and hands over what was claimed', async () => {
    await using t = await openFanOut()
    Object.assign(t.probe, { left: 150, slots: 100 })
    expect(await t.fanOut.writePart()).toBe(100)
    expect(t.probe.accepted).toHaveLength(100)
    expect(await t.fanOut.writePart()).toBe(50)
    expect(await t.fanOut.writePart()).toBeUndefined()
    expect(t.probe.limits).toEqual([100, 100, 100])
    expect(t.probe.notified).toBe(0)
  })

  test('has 1,000 rows at most, and so many where there is no room or no slot: they wait in the queue', async () => {
    await using t = await openFanOut()
    Object.assign(t.probe, { left: 10_000, slots: 5_000 })
    await t.fanOut.writePart()
    t.probe.slots = 0
    await t.fanOut.writePart()
    Object.assign(t.probe, { slots: 3, hasRoom: false })
    await t.fanOut.writePart()
    expect(t.probe.limits).toEqual([1_000, 1_000, 1_000])
  })

  test('leaves half of the room to rows that are due in the queue, and lets the dispatcher look for them', async () => {
    await using t = await openFanOut()
    Object.assign(t.probe, { left: 10_000, slots: 101, nextDueAt: new Date(t.clock.now()) })
    await t.fanOut.writePart()
    expect(t.probe.notified).toBe(1)
    t.probe.nextDueAt = new Date(t.clock.now() + 1)
    await t.fanOut.writePart()
    await t.fanOut.writePart()
    expect(t.probe.limits).toEqual([101, 51, 101])
    expect(t.probe.notified).toBe(1)
  })

  test('is not written of a policy that sets nothing aside', async () => {
    await using t = await openFanOut()
    const dispatcher = buildProbeDispatcher(t.probe, {
      name: 'whole',
      buildRouting: () => ({ matched: '', written: { name: '', text: '', values: [] } }),
    })
    const { db } = t
    expect(await buildFanOut({ clock: t.clock, db, dispatcher }).writePart()).toBeUndefined()
  })

  test('waits for the turn of its dispatcher, and ends it', async () => {
    await using t = await openFanOut()
    t.probe.left = 1
    await t.mutex.take()
    const part = t.fanOut.writePart()
    await new Promise(setImmediate)
    expect(t.probe.limits).toEqual([])
    t.mutex.release()
    expect(await part).toBe(1)
    await t.mutex.take()
  })

  test('lets its dispatcher look for claims that a failed statement may have made, and ends its turn', async () => {
    await using t = await openFanOut()
    Object.assign(t.probe, { left: 1, isBroken: true })
    await expect(t.fanOut.writePart()).rejects.toThrow('division by zero')
    expect(t.probe.leaks).toBe(1)
    t.probe.isBroken = false
    expect(await t.fanOut.writePart()).toBe(1)
  })
})

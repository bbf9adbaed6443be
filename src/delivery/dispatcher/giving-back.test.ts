import { expect, test } from 'vitest'
import { buildListeningLogger } from '../../../test/harness/app/listening-logger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import type { Claim } from '../policy.ts'
import { buildGivingBack } from './giving-back.ts'

/** Release of claims to a queue in memory. */
function openGivingBack() {
  const clock = buildManualClock()
  const releases: { ids: string[]; inMs: number }[] = []
  const done: string[] = []
  const lines: string[] = []
  const faults: string[] = []
  let failures = 0
  const release = async (claims: readonly Claim[], now: Date, dueAt = now) => {
    if (failures > 0) {
      failures -= 1
      throw new Error('connection terminated')
    }
    releases.push({ ids: claims.map(({ id }) => id), inMs: dueAt.getTime() - clock.now() })
  }
  const logger = buildListeningLogger((line) => lines.push(line))
  const onOwnFault = (fault: OwnFault) => faults.push(fault.code)
  const givingBack = buildGivingBack({ policy: { queue: { release } }, clock, logger, onOwnFault }, (claims) =>
    done.push(...claims.map(({ id }) => id)),
  )
  return {
    ...{ clock, releases, done, lines, faults, givingBack },
    add: async (error: Error, ...ids: string[]) => {
      for (const id of ids) givingBack.add({ id, fence: 1 }, error)
      await givingBack.settled()
    },
    failNext: (count: number) => {
      failures = count
    },
  }
}

const OF_PROCESS = new OwnFault('EMFILE')
const OF_RECEIVER = new OwnFault('EADDRNOTAVAIL')

test('faults of one turn are given back together, after the shortest wait, with one line', async () => {
  const t = openGivingBack()
  await t.add(OF_PROCESS, 'a', 'b')
  expect(t.releases).toEqual([{ ids: ['a', 'b'], inMs: 1_000 }])
  expect([t.done, t.faults, t.lines.length]).toEqual([['a', 'b'], ['EMFILE', 'EMFILE'], 1])
  expect(t.givingBack.settled()).toBeUndefined()
})

test('each fault behind the wait of the last doubles it, up to half a minute; those within it do not', async () => {
  const t = openGivingBack()
  for (const waitMs of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    await t.add(OF_PROCESS, 'first')
    expect(t.releases.at(-1)?.inMs).toBe(waitMs)
    t.clock.advance(waitMs - 1)
    await t.add(OF_PROCESS, 'within')
    expect(t.releases.at(-1)?.inMs).toBe(1)
    t.clock.advance(1)
  }
})

test('an attempt that was made within the wait changes nothing, one behind it makes the next wait the shortest', async () => {
  const t = openGivingBack()
  await t.add(OF_PROCESS, 'a')
  t.clock.advance(999)
  t.givingBack.noteAttempt()
  t.clock.advance(1)
  await t.add(OF_PROCESS, 'b')
  expect(t.releases.at(-1)?.inMs).toBe(2_000)
  t.clock.advance(2_000)
  t.givingBack.noteAttempt()
  await t.add(OF_PROCESS, 'c')
  expect(t.releases.at(-1)?.inMs).toBe(1_000)
})

test('a process that lacks something pauses until the wait is over; a fault towards one receiver, or a bug, does not stop it', async () => {
  const t = openGivingBack()
  await t.add(OF_RECEIVER, 'a')
  expect([t.givingBack.isPaused(), t.faults]).toEqual([false, ['EADDRNOTAVAIL']])
  t.clock.advance(1_000)
  await t.add(new Error('a bug'), 'b')
  expect([t.givingBack.isPaused(), t.faults]).toEqual([false, ['EADDRNOTAVAIL']])
  t.clock.advance(2_000)
  await t.add(OF_PROCESS, 'c')
  t.clock.advance(3_999)
  expect(t.givingBack.isPaused()).toBe(true)
  t.clock.advance(1)
  expect(t.givingBack.isPaused()).toBe(false)
})

test('claims that the database does not take back are tried again after a second, due at once when the wait has passed', async () => {
  const t = openGivingBack()
  t.failNext(2)
  const added = t.add(OF_PROCESS, 'a')
  for (let tries = 0; tries < 2; tries += 1) {
    await new Promise(setImmediate)
    expect(t.releases).toEqual([])
    t.clock.advance(1_000)
  }
  await added
  expect(t.releases).toEqual([{ ids: ['a'], inMs: 0 }])
  expect(t.lines.filter((line) => line.startsWith('claims not given back yet'))).toHaveLength(2)
})

test('more claims than one statement takes go in several', async () => {
  const t = openGivingBack()
  const ids = Array.from({ length: 501 }, (_, index) => `row ${index}`)
  await t.add(OF_PROCESS, ...ids)
  expect(t.releases.map((release) => release.ids.length)).toEqual([500, 1])
  expect(t.done).toEqual(ids)
})

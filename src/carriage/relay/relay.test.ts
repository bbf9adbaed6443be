import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { buildRelayUnderTest, MAX_AGE_MS } from '../../../test/harness/carriage/relay-under-test.ts'
import { deleteOldEvents } from '../../event/recording/event-removal.store.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { type EventLog, LogError } from '../log/log.ts'
import { beginRepublication, closeOutbox } from './outbox.store.ts'

test('events are appended in the order of their recording, and leave the outbox', async () => {
  await using under = await buildRelayUnderTest()
  const ids = [...(await under.record(600)), ...(await under.record(2)), ...(await under.record())]
  await under.settle()
  expect(under.stored()).toEqual(ids)
  expect(under.log.entries()[0]).toMatchObject({
    subject: 'ev.0190a5c0-0000-7000-8000-00000000000a.contract.update',
    body: JSON.stringify({ id: ids[0] }),
  })
  expect(await under.facts()).toMatchObject({ isOpen: true, waiting: 0, sequence: 603, relay: 'relay-1' })
  expect(under.told).toMatchObject({ appended: 603, failed: 0, lines: [] })
})

test('a transaction that commits after later ones is not passed over', async () => {
  await using under = await buildRelayUnderTest()
  const [recorded, committed] = [Promise.withResolvers<string[]>(), Promise.withResolvers<void>()]
  const slow = inTransaction(under.db, async (tx) => {
    recorded.resolve(await under.record(1, tx))
    await committed.promise
  })
  const [early] = await recorded.promise
  const [late] = await under.record()
  await under.settle()
  expect(under.stored()).toEqual([late])
  committed.resolve()
  await slow
  await under.settle()
  expect(under.stored()).toEqual([late, early])
})

test('of a transaction that is rolled back nothing is appended', async () => {
  await using under = await buildRelayUnderTest()
  const failed = inTransaction(under.db, async (tx) => {
    await under.record(3, tx)
    throw new Error('rolled back')
  })
  await expect(failed).rejects.toThrow('rolled back')
  await under.settle()
  expect(under.stored()).toEqual([])
})

test('events wait while the log is away, in order, and are told of once', async () => {
  await using under = await buildRelayUnderTest()
  const before = await under.record()
  await under.settle()
  under.log.break()
  const during = await under.record(3)
  for (let round = 0; round < 3; round += 1) expect(await under.settle()).toBe(1_000)
  expect(await under.facts()).toMatchObject({ waiting: 3, relay: null })
  expect(under.told.lines).toEqual([expect.stringContaining('event log not written')])
  under.log.mend()
  const after = await under.record()
  await under.settle()
  expect(under.stored()).toEqual([...before, ...during, ...after])
  expect(under.told.lines[1]).toBe('event log is written again')
})

test('a process that lost its lease behind an append leaves the outbox as it is: another one appends again', async () => {
  await using under = await buildRelayUnderTest()
  await under.settle()
  const ids = await under.record(2)
  // Reads and appends; the next round confirms.
  await under.relay.round()
  expect(under.stored()).toEqual(ids)
  await under.pool.query(
    `update event_log set relay = 'relay-2', lease_until = clock_timestamp() + interval '1 minute'`,
  )
  await under.settle()
  // A move would take an empty outbox for a position that covers them.
  expect(await under.facts()).toMatchObject({ waiting: 2, sequence: 0, relay: 'relay-2' })
  await under.settle(under.build('relay-2'))
  expect(under.stored()).toEqual([...ids, ...ids])
  expect(await under.facts()).toMatchObject({ waiting: 0, sequence: 4 })
})

test('a server that answers without the log is left for another one; a lost connection repairs itself', async () => {
  await using under = await buildRelayUnderTest()
  await under.record()
  await under.settle()
  expect(under.told.opened).toBe(1)
  const { isConnected } = under.log
  under.log.break()
  await under.settle()
  under.log.mend()
  await under.settle()
  expect(under.told.opened).toBe(1)
  under.log.break()
  under.log.isConnected = () => true
  await under.record()
  await under.settle()
  under.log.isConnected = isConnected
  under.log.mend()
  await under.settle()
  expect(under.told.opened).toBe(2)
})

test('a batch that was stored without an answer is not appended again', async () => {
  await using under = await buildRelayUnderTest()
  await under.settle()
  under.log.break('stores')
  const ids = await under.record(5)
  await under.settle()
  expect(under.stored()).toEqual(ids)
  under.log.mend()
  const more = await under.record()
  await under.settle()
  expect(under.stored()).toEqual([...ids, ...more])
  expect((await under.facts()).waiting).toBe(0)
})

test('a batch that is stored long after its answer was given up loses nothing, and no first place changes', async () => {
  await using under = await buildRelayUnderTest()
  await under.settle()
  let late: (() => Promise<unknown>) | undefined
  let calls = 0
  const relay = under.build('relay-1', {
    ...under.log,
    append: async (messages, after) => {
      calls += 1
      if (calls === 1) {
        late = () => under.log.append(messages, after)
        throw new LogError('unreachable', 'no answer')
      }
      await late?.()
      late = undefined
      return under.log.append(messages, after)
    },
  })
  const ids = await under.record(3)
  expect(await under.settle(relay)).toBe(1_000)
  const more = await under.record()
  await under.settle(relay)
  expect(calls).toBe(3)
  expect(under.stored()).toEqual([...ids, ...ids, ...more])
  expect(await under.facts()).toMatchObject({ waiting: 0, sequence: 7, loss: null })
})

test('a process that ends between the log and the database appends again: at least once, in order', async () => {
  await using under = await buildRelayUnderTest()
  const ids = await under.record(3)
  // Appends, and ends before the next statement confirms.
  await under.relay.round()
  expect(under.stored()).toEqual(ids)
  await under.pool.query('update event_log set relay = null')
  const more = await under.record()
  await under.settle(under.build('relay-2'))
  expect(under.stored()).toEqual([...ids, ...ids, ...more])
})

test('one process appends, until its lease ends', async () => {
  await using under = await buildRelayUnderTest()
  await under.settle()
  const second = under.build('relay-2')
  await under.record()
  expect(await under.settle(second)).toBe(1_000)
  expect(under.stored()).toEqual([])
  await under.pool.query("update event_log set lease_until = clock_timestamp() - interval '1 ms'")
  await under.settle(second)
  expect(await under.facts()).toMatchObject({ relay: 'relay-2', waiting: 0 })
  // The first one finds another lease, and appends nothing.
  await under.record()
  await under.settle()
  expect(under.stored()).toHaveLength(1)
})

test('a process that another one stood in for writes no earlier position, and finds what that one lost', async () => {
  await using under = await buildRelayUnderTest()
  const first = await under.record(2)
  await under.settle()
  // Frozen for longer than its lease; the other one appends, and ends.
  await under.pool.query("update event_log set lease_until = clock_timestamp() - interval '1 ms'")
  const second = under.build('relay-2')
  const more = await under.record(3)
  await under.settle(second)
  second.stop()
  await second.run()
  expect(await under.facts()).toMatchObject({ relay: null, sequence: 5 })
  await under.settle()
  expect(await under.facts()).toMatchObject({ relay: 'relay-1', sequence: 5 })
  under.passMs(10_000)
  await under.settle()
  expect(await under.facts()).toMatchObject({ relay: 'relay-1', sequence: 5 })
  under.log.lose(2)
  under.passMs(10_000)
  await under.settle()
  under.passMs(5_000)
  await under.settle()
  expect(under.told.losses).toEqual(['behind'])
  expect(new Set(under.stored())).toEqual(new Set([...first, ...more]))
})

test('a process whose lease ended meanwhile changes neither order nor what is stored', async () => {
  await using under = await buildRelayUnderTest()
  const first = await under.record(2)
  const frozen = Promise.withResolvers<void>()
  const reached = Promise.withResolvers<void>()
  const slow = under.build('relay-1', {
    ...under.log,
    append: async (messages, after) => {
      reached.resolve()
      await frozen.promise
      return under.log.append(messages, after)
    },
  })
  const stalled = slow.round()
  await reached.promise
  await under.pool.query("update event_log set lease_until = clock_timestamp() - interval '1 ms'")
  const second = under.build('relay-2')
  const more = await under.record(2)
  await under.settle(second)
  frozen.resolve()
  await stalled
  await under.settle(slow)
  expect(under.stored()).toEqual([...first, ...more])
})

test('another writer is found by the position, and nothing is lost', async () => {
  await using under = await buildRelayUnderTest()
  await under.record()
  await under.settle()
  const [entry] = under.log.entries()
  if (entry) under.log.intrude(entry)
  const ids = await under.record(2)
  await under.settle()
  expect(under.stored().slice(2)).toEqual(ids)
  expect(under.told).toMatchObject({ failed: 0, losses: [] })
})

test('a log that was replaced gets every event again that it would hold, before the ones that wait', async () => {
  await using under = await buildRelayUnderTest()
  const old = await under.record(1)
  await under.settle()
  under.passMs(MAX_AGE_MS + 1)
  const kept = [...(await under.record(300)), ...(await under.record(2))]
  await under.settle()
  under.log.replace()
  under.passMs(10_000)
  const waiting = await under.record()
  await under.settle()
  const stored = under.stored()
  expect(stored.slice(0, 302)).toEqual(kept)
  expect(new Set(stored)).toEqual(new Set([...kept, ...waiting]))
  expect(stored).not.toContain(old[0])
  expect(await under.facts()).toMatchObject({ loss: 'replaced', republishAfter: null, waiting: 0 })
  expect(under.told.losses).toEqual(['replaced'])
  expect(under.told.lines[0]).toMatch(/lost events, publishing them again/)
})

test('a replaced log is found without an event', async () => {
  await using under = await buildRelayUnderTest()
  const ids = await under.record(2)
  await under.settle()
  under.log.replace()
  under.passMs(10_000)
  await under.settle()
  expect(under.stored()).toEqual(ids)
})

test('a log that lost its last messages gets them again, once it is certain', async () => {
  await using under = await buildRelayUnderTest()
  const early = await under.record(2)
  await under.settle()
  under.passMs(3_600_000)
  const ids = await under.record(6)
  await under.settle()
  under.log.lose(5)
  under.passMs(10_000)
  expect(await under.settle()).toBe(1_000)
  expect(under.told.losses).toEqual([])
  under.passMs(5_000)
  await under.settle()
  expect(under.told.losses).toEqual(['behind'])
  expect(under.stored()).toEqual([...early, ...ids.slice(0, 3), ...ids])
})

test('a log that is away between two leaders that have not read all of it has lost nothing', async () => {
  await using under = await buildRelayUnderTest()
  const ids = await under.record(3)
  await under.settle()
  const [, , third] = under.log.entries()
  under.log.lose(2)
  under.passMs(10_000)
  await under.settle()
  under.log.break()
  under.passMs(6_000)
  await under.settle()
  under.log.mend()
  await under.settle()
  expect(under.told.losses).toEqual([])
  if (third) under.log.intrude(third)
  await under.settle()
  expect(under.stored()).toEqual(ids)
  expect(under.told.losses).toEqual([])
})

test('a copy that still has what the leader lost does not say from where events are published again', async () => {
  await using under = await buildRelayUnderTest()
  const early = await under.record(2)
  await under.settle()
  under.passMs(3_600_000)
  const lost = await under.record(2)
  await under.settle()
  under.passMs(3_600_000)
  const late = await under.record(2)
  await under.settle()
  const copy = [...under.log.entries()]
  under.log.lose(2)
  for (const { id: _id, ...entry } of copy.slice(2)) under.log.intrude({ ...entry, id: randomUUID() })
  const read: EventLog['read'] = async ({ from, limit }) =>
    copy.filter(({ sequence }) => !(from instanceof Date) && sequence > from.sequence).slice(0, limit)
  const relay = under.build('relay-1', { ...under.log, read })
  await under.settle(relay)
  expect(under.told.losses).toEqual(['behind'])
  expect(under.stored().filter((id) => [...early, ...lost, ...late].includes(id))).toEqual([
    ...early,
    ...early,
    ...lost,
    ...late,
  ])
})

test('a leader that has not read all of its log is no loss', async () => {
  await using under = await buildRelayUnderTest()
  const ids = await under.record(3)
  await under.settle()
  const known = [...under.log.entries()]
  under.log.lose(2)
  under.passMs(10_000)
  await under.settle()
  const [, , third] = known
  if (third) under.log.intrude(third)
  under.passMs(6_000)
  await under.settle()
  expect(under.stored()).toEqual(ids)
  expect(under.told.losses).toEqual([])
})

test('a loss is found when the relay died before it told of it', async () => {
  await using under = await buildRelayUnderTest()
  const ids = await under.record(3)
  await under.settle()
  await under.pool.query('update event_log set relay = null')
  under.log.replace()
  await under.settle(under.build('relay-2'))
  expect(under.stored()).toEqual(ids)
})

test('what a command asks for is published again from its instant on, and the log goes on', async () => {
  await using under = await buildRelayUnderTest()
  await under.record(2)
  await under.settle()
  under.passMs(60_000)
  const since = new Date(under.clock.now())
  const ids = await under.record(3)
  await under.settle()
  expect(await beginRepublication(under.db, { after: since, now: since })).toBe(true)
  under.passMs(10_000)
  const more = await under.record()
  await under.settle()
  expect(under.stored().slice(5)).toEqual([...ids, ...more])
  // An earlier instant that is asked for meanwhile counts.
  await beginRepublication(under.db, { after: since, now: since })
  await beginRepublication(under.db, { after: new Date(0), now: since })
  under.passMs(10_000)
  await under.settle()
  expect(under.stored()).toHaveLength(9 + 6)
})

test('events that retention removed before they were appended are told of', async () => {
  await using under = await buildRelayUnderTest()
  const [gone, kept] = [await under.record(), await under.record()]
  await under.pool.query('delete from event_occurrence where document_id = $1', [gone[0]])
  await under.settle()
  expect(under.stored()).toEqual(kept)
  expect((await under.facts()).waiting).toBe(0)
  expect(under.told.lines).toEqual([expect.stringContaining('removed by retention')])
})

test('the retention of events bounds what waits', async () => {
  await using under = await buildRelayUnderTest()
  await under.record(3)
  await under.pool.query('update event_occurrence set routed_at = created_at')
  under.passMs(60_000)
  const [kept] = await under.record()
  await under.pool.query('update event_occurrence set routed_at = created_at where document_id = $1', [kept])
  const before = new Date(under.clock.now() - 30_000)
  expect(await deleteOldEvents(under.db, { before, auditBefore: before, limit: 100 })).toBe(3)
  expect(await under.facts()).toMatchObject({ waiting: 1, oldestAt: new Date(under.clock.now()) })
  await under.settle()
  expect(under.stored()).toEqual([kept])
})

test('without an open log no event fills the outbox, and no relay appends', async () => {
  await using under = await buildRelayUnderTest()
  await under.settle()
  await under.record()
  await closeOutbox(under.db)
  await under.pool.query(
    "insert into event_occurrence (document_id, event, resource, action, created_at) values (gen_random_uuid(), 'a.b', 'a', 'b', now())",
  )
  expect(await under.facts()).toMatchObject({ isOpen: false, waiting: 0, relay: null, sequence: null })
  expect(await beginRepublication(under.db, { after: new Date(0), now: new Date(0) })).toBe(false)
  under.passMs(10_000)
  expect(await under.settle()).toBe(1_000)
  expect(under.stored()).toEqual([])
})

test('a log that refuses is opened again', async () => {
  await using under = await buildRelayUnderTest()
  const ids = await under.record()
  let refusals = 2
  const relay = under.build('relay-1', {
    ...under.log,
    readState: async () => {
      if (refusals-- > 0) throw new LogError('refused', 'no')
      return under.log.readState()
    },
  })
  await under.settle(relay)
  await under.settle(relay)
  await under.settle(relay)
  expect(under.told.opened).toBe(3)
  expect(under.stored()).toEqual(ids)
})

test('run goes on until it is stopped, confirms what it appended, and gives the lease back', async () => {
  await using under = await buildRelayUnderTest()
  const running = under.relay.run()
  const ids = await under.record(3)
  under.relay.notify()
  await expect.poll(under.stored).toEqual(ids)
  under.relay.stop()
  await running
  expect(await under.facts()).toMatchObject({ waiting: 0, relay: null })
})

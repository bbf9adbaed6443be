import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  buildIntakeUnderTest,
  ELSEWHERE,
  HERE,
  RETENTION_MS,
  seals,
} from '../../../test/harness/carriage/intake-under-test.ts'
import { buildCarriedSeal, CARRIED_HEADER } from '../log/carried-event.ts'
import { type EventLog, LogError } from '../log/log.ts'

const same = (one: readonly string[], two: readonly string[]) => expect(one.toSorted()).toEqual(two.toSorted())

test('a cell takes in the events of home for its accounts, each once, and queues them', async () => {
  await using under = await buildIntakeUnderTest()
  const { message, append } = under
  const [id] = await append(
    message(),
    message({ account: ELSEWHERE }),
    message({ account: null }),
    message({ origin: 'two' }),
    message({ origin: 'one' }),
    message({ type: 'webhook.test' }),
  )
  await under.settle()
  expect(await under.events()).toEqual([id])
  expect(await under.queue()).toEqual([id])
  const { rows } = await under.pool.query('select * from event_occurrence')
  expect(rows[0]).toMatchObject({ event: 'invoice.create', account: HERE, resource_id: 'ä" 7', origin: 'home' })
  expect(rows[0]).toMatchObject({ ordinal: null, routed_at: null, created_at: new Date(under.clock.now()) })
  expect(await under.facts()).toMatchObject({ sequence: 6, readSince: null, runner: 'intake-1', fault: null })
  expect(under.told).toMatchObject({ taken: 1, failed: 0, queued: 1, lines: [] })
})

test('an event that is there already is not queued again', async () => {
  await using under = await buildIntakeUnderTest()
  const first = under.message()
  await under.append(first)
  await under.settle()
  await under.pool.query('delete from event_queue')
  await under.append(first, first)
  await under.settle()
  expect(await under.events()).toEqual([first.id])
  expect(await under.queue()).toEqual([])
})

test('home takes in the events of cells that a global webhook subscribes to', async () => {
  await using under = await buildIntakeUnderTest('home')
  const { pool, message, append } = under
  const [type, other, webhook] = [randomUUID(), randomUUID(), randomUUID()]
  for (const [id, name] of [
    [type, 'invoice.create'],
    [other, 'invoice.update'],
  ])
    await pool.query(
      `insert into event (document_id, internal, account_scope, created_at, updated_at)
       values ($1, $2, 'account', now(), now())`,
      [id, name],
    )
  await pool.query(
    `insert into webhook (document_id, url, is_global, created_at, updated_at)
     values ($1, 'https://example.com/', true, now(), now())`,
    [webhook],
  )
  await pool.query(
    `insert into webhook_event (document_id, webhook, event, created_at, updated_at) values ($1, $2, $3, now(), now())`,
    [randomUUID(), webhook, type],
  )
  const [id] = await append(
    message({ account: ELSEWHERE }),
    message({ type: 'invoice.update' }),
    message({ origin: 'home' }),
  )
  await under.settle()
  expect(await under.events()).toEqual([id])
})

test('messages with another seal, of another service or with a wrong form are not taken in', async () => {
  await using under = await buildIntakeUnderTest()
  const good = under.message()
  const text = seals.open(good.headers[CARRIED_HEADER] as string) as string
  const resealed = (value: string) => ({ ...good, headers: { [CARRIED_HEADER]: seals.seal(value) } })
  const forged = buildCarriedSeal([Buffer.alloc(32, 9)])
  await under.append(
    { ...good, headers: { [CARRIED_HEADER]: forged.seal(text) } },
    { ...good, headers: { [CARRIED_HEADER]: text } },
    { ...good, id: randomUUID() },
    under.message({ home: randomUUID() }),
    ...['', '[]', '{}', 'null', text.replace(HERE, 'x'), text.replace('[1,', '[2,'), `${text} `.repeat(2)].map(
      resealed,
    ),
    { ...good, headers: {} },
  )
  await under.settle()
  expect(await under.events()).toEqual([])
  expect(under.told.lines).toEqual([
    'messages of the event log have another seal, and were not taken in: see docs/operations/cells.md, foreign messages',
  ])
  const old = buildCarriedSeal([Buffer.alloc(32, 2)])
  await under.append({ ...good, headers: { [CARRIED_HEADER]: old.seal(text) } })
  await under.settle()
  expect(await under.events()).toEqual([good.id])
})

test('events that are older than their account is kept are passed over, and no retention is read for young ones', async () => {
  await using under = await buildIntakeUnderTest()
  const dayMs = 86_400_000
  const aged = (ms: number) => under.message({ createdAt: new Date(under.clock.now() - ms) })
  const young = aged(dayMs)
  await under.append(young)
  await under.settle()
  expect(under.told).toMatchObject({ taken: 1, edgeReads: 0 })
  under.own.push({ account: HERE, before: new Date(under.clock.now() - 2 * dayMs) })
  const [old, kept] = [aged(2 * dayMs + 1), aged(2 * dayMs)]
  await under.append(old, kept)
  await under.settle()
  expect(await under.events()).toEqual([kept.id, young.id])
  expect(under.told.edgeReads).toBeGreaterThan(0)
  expect(under.told.lines).toHaveLength(1)
})

test('events that are older than the ledger is kept are passed over', async () => {
  await using under = await buildIntakeUnderTest()
  const old = under.message({ createdAt: new Date(under.clock.now() - RETENTION_MS - 1) })
  const young = under.message({ createdAt: new Date(under.clock.now() - RETENTION_MS) })
  await under.append(old, young)
  await under.settle()
  expect(await under.events()).toEqual([young.id])
  expect(under.told.lines).toHaveLength(1)
})

test('after a loss of the log nothing is missing, and nothing is taken in twice', async () => {
  await using under = await buildIntakeUnderTest()
  const { log, message } = under
  const lost = Array.from({ length: 10 }, () => message())
  await under.append(...lost)
  await under.settle()
  await under.pool.query('delete from event_queue')

  // The log lost its end, and the relay appends again.
  log.lose(5)
  under.passMs(1_000)
  await under.settle()
  expect(under.told.faults).toEqual([])
  under.passMs(5_000)
  await under.settle()
  expect(under.told.faults).toEqual(['ahead'])
  const later = message()
  await under.append(...lost.slice(5), later)
  await under.settle()
  same(
    await under.events(),
    [...lost, later].map(({ id }) => id),
  )
  expect(await under.queue()).toEqual([later.id])

  log.replace()
  under.passMs(1_000)
  await under.settle()
  expect(under.told.faults).toEqual(['ahead', 'replaced'])
  const last = message()
  await under.append(...lost, later, last)
  await under.settle()
  expect((await under.queue()).toSorted()).toEqual([later.id, last.id].toSorted())
  expect(await under.facts()).toMatchObject({ fault: 'replaced', missingSince: null, sequence: 12 })
})

test('a log whose leader is a moment behind what another server gave out has lost nothing', async () => {
  await using under = await buildIntakeUnderTest()
  let isBehind = false
  const lagging: EventLog = {
    ...under.log,
    read: async (query) => {
      if (isBehind) throw new LogError('ahead', 'The log ends before the position.')
      return under.log.read(query)
    },
  }
  const intake = under.build('intake-1', lagging)
  const events: string[] = []
  for (const round of [1, 2, 3]) {
    events.push(...(await under.append(under.message())))
    isBehind = false
    await under.settle(intake)
    same(await under.events(), events)
    isBehind = true
    await under.settle(intake)
    under.passMs(4_000)
    // The time of an earlier lag does not count.
    expect([round, under.told.faults, under.told.lines]).toEqual([round, [], []])
  }
})

test('a log that lost its end, and has other messages there at once, is read again', async () => {
  await using under = await buildIntakeUnderTest()
  const [kept, lost] = [under.message(), under.message()]
  await under.append(kept, lost)
  await under.settle()
  under.log.lose(1)
  await under.settle()
  under.passMs(1_000)
  const [other, later] = [under.message(), under.message()]
  await under.append(other, later)
  await under.settle()
  expect(under.told.faults).toEqual(['replaced'])
  same(
    await under.events(),
    [kept, lost, other, later].map(({ id }) => id),
  )
})

test('messages that the log removed before they were read are an alarm that stays', async () => {
  await using under = await buildIntakeUnderTest()
  await under.append(under.message())
  await under.settle()
  const at = new Date(under.clock.now())
  under.passMs(60_000)
  const [, , kept] = await under.append(under.message(), under.message(), under.message())
  under.log.expire(3)
  await under.settle()
  expect(under.told.faults).toEqual(['expired'])
  expect(await under.events()).toContain(kept)
  expect(await under.facts()).toMatchObject({ fault: 'expired', missingSince: at, readSince: null })
})

test('a process at a time takes in; another goes on when its lease has ended, and a late one changes nothing', async () => {
  await using under = await buildIntakeUnderTest()
  const second = under.build('intake-2')
  await under.append(under.message())
  await under.settle()
  expect(await second.round()).toBe(1_000)
  await under.pool.query(`update log_intake set lease_until = now() - interval '1 second'`)
  const [id] = await under.append(under.message())
  await under.settle(second)
  expect(await under.events()).toContain(id)
  expect(await under.facts()).toMatchObject({ runner: 'intake-2', sequence: 2 })
  // The first one has an old position.
  await under.append(under.message())
  await under.intake.round()
  expect(await under.facts()).toMatchObject({ runner: 'intake-2', sequence: 2 })
  await under.settle(second)
  expect(await under.events()).toHaveLength(3)
})

test('what was passed over is taken in when the log is read again from an instant, also under load', async () => {
  await using under = await buildIntakeUnderTest()
  const since = new Date(under.clock.now())
  const [moved] = await under.append(under.message({ account: ELSEWHERE }))
  await under.settle()
  expect(await under.events()).toEqual([])
  await under.pool.query(`insert into account_fence (account, version, state) values ($1, 2, 'open')`, [ELSEWHERE])
  await under.pool.query('update log_intake set read_since = $1', [since])
  // Without a pause in between.
  const [next] = await under.append(under.message())
  await under.settle()
  same(await under.events(), [moved as string, next as string])
  expect(await under.facts()).toMatchObject({ readSince: null })
})

test('a log that is away is waited for, and the failure is told once', async () => {
  await using under = await buildIntakeUnderTest()
  under.log.break()
  expect(await under.settle()).toBe(1_000)
  expect(await under.settle()).toBe(1_000)
  expect(under.told).toMatchObject({ failed: 2, lines: [expect.stringContaining('not taken in')] })
  expect(await under.facts()).toMatchObject({ runner: null })
  under.log.mend()
  const [id] = await under.append(under.message())
  await under.settle()
  expect(await under.events()).toEqual([id])
  expect(under.told.lines.at(-1)).toBe('events of other databases are taken in again')
})

test.each(['nothing at all', 'no message from the instant on'])(
  'a server that answers a read from an instant with %s, while the log has messages, does not end it',
  async (answer) => {
    await using under = await buildIntakeUnderTest()
    const ids = await under.append(under.message(), under.message())
    let isBehind = true
    const intake = under.build('intake-1', {
      ...under.log,
      readAt: async (sequence) => (isBehind && answer === 'nothing at all' ? undefined : under.log.readAt(sequence)),
      read: async (query) => (isBehind && query.from instanceof Date ? [] : under.log.read(query)),
    })
    await under.settle(intake)
    expect(await under.facts()).toMatchObject({ incarnation: null, readSince: expect.any(Date) })
    isBehind = false
    await under.settle(intake)
    same(await under.events(), ids)
    expect(await under.facts()).toMatchObject({ sequence: 2, readSince: null })
  },
)

test('an instant behind the last message, and an empty log, end a read from it at the end of the log', async () => {
  await using under = await buildIntakeUnderTest()
  await under.append(under.message())
  under.passMs(1_000)
  await under.pool.query('update log_intake set read_since = $1', [new Date(under.clock.now())])
  await under.settle()
  expect(await under.facts()).toMatchObject({ sequence: 1, readSince: null })
  under.log.expire(1)
  await under.pool.query('update log_intake set read_since = $1', [new Date(0)])
  under.passMs(5_000)
  await under.settle()
  expect(await under.facts()).toMatchObject({ sequence: 1, readSince: null })
  expect(await under.events()).toEqual([])
})

test('a log that is away between two leaders that have not read all of it has lost nothing', async () => {
  await using under = await buildIntakeUnderTest()
  await under.append(under.message(), under.message())
  await under.settle()
  under.log.lose(1)
  under.passMs(10_000)
  await under.settle()
  under.log.break()
  under.passMs(6_000)
  await under.settle()
  under.log.mend()
  await under.settle()
  expect(under.told.faults).toEqual([])
})

test('a database begins with what the log stored by a clock that is behind', async () => {
  await using under = await buildIntakeUnderTest()
  under.clock.advance(-120_000)
  const ids = await under.append(under.message())
  await under.settle()
  expect(await under.events()).toEqual(ids)
})

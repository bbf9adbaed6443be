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
import { type EventLog, fingerprintOf, LogError } from '../log/log.ts'

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
  expect(under.told).toMatchObject({ taken: 1, queued: 1 })
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
  const [old, kept, fresh] = [aged(2 * dayMs + 1), aged(2 * dayMs), aged(0)]
  await under.append(old, kept, fresh)
  await under.settle()
  expect(await under.events()).toEqual([kept.id, young.id, fresh.id])
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
  expect(under.told.failed).toBe(0)
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

test('a fault that cannot be kept is a failure, and is kept once it can be', async () => {
  await using under = await buildIntakeUnderTest()
  await under.append(under.message())
  await under.settle()
  await under.pool.query('alter table log_intake add constraint faultless check (fault is null)')
  under.log.replace()
  expect(await under.settle()).toBe(1_000)
  expect(under.told).toMatchObject({ faults: [], failed: 1, lines: [expect.stringContaining('not taken in')] })
  await under.pool.query('alter table log_intake drop constraint faultless')
  await under.settle()
  expect(under.told.faults).toEqual(['replaced'])
})

test('an idle intake renews its right every five seconds, and sees what changed meanwhile', async () => {
  await using under = await buildIntakeUnderTest()
  const { pool, intake } = under
  const lease = async () => {
    const { rows } = await pool.query('select extract(epoch from lease_until) as until from log_intake')
    return rows[0].until as string
  }
  await under.append(under.message())
  expect(await under.settle()).toBe(100)
  const first = await lease()
  under.passMs(4_999)
  expect([await intake.round(), await lease()]).toEqual([100, first])
  under.passMs(1)
  expect(await intake.round()).toBe(100)
  const second = await lease()
  expect(Number(second)).toBeGreaterThan(Number(first))
  expect([await intake.round(), await lease()]).toEqual([100, second])
  // Somebody asks for an earlier instant.
  await pool.query('update log_intake set read_since = $1', [new Date(0)])
  under.passMs(5_000)
  expect(await intake.round()).toBe(0)
  expect(await under.settle()).toBe(100)
  expect(await under.facts()).toMatchObject({ readSince: null })
  await pool.query(`update log_intake set runner = 'intake-2', lease_until = now() + interval '1 minute'`)
  under.passMs(5_000)
  expect([await intake.round(), await intake.round()]).toEqual([0, 1_000])
})

test('a log that refuses is connected to anew, one that does not answer is asked again, and a fault is that of a log alone', async () => {
  await using under = await buildIntakeUnderTest()
  const faults: Error[] = []
  let closed = 0
  const log: EventLog = {
    ...under.log,
    read: async (query) => {
      const fault = faults.shift()
      if (fault) throw fault
      return under.log.read(query)
    },
    close: async () => {
      closed += 1
    },
  }
  const intake = under.build('intake-1', log)
  await under.settle(intake)
  expect([under.told.opened, closed]).toEqual([1, 0])
  for (const [fault, opened] of [
    [new LogError('refused', 'The server refuses the user.'), 2],
    [new LogError('unreachable', 'No answer.'), 2],
    [Object.assign(new Error('another error'), { code: 'expired' }), 2],
  ] as const) {
    faults.push(fault)
    expect(await under.settle(intake)).toBe(1_000)
    expect(await under.facts()).toMatchObject({ runner: null })
    expect(await under.settle(intake)).toBe(100)
    expect([under.told.opened, closed]).toEqual([opened, opened - 1])
  }
  expect(under.told).toMatchObject({ failed: 3, faults: [] })
  const lines = ['events of other databases are not taken in', 'events of other databases are taken in again']
  expect(under.told.lines).toEqual([...lines, ...lines, ...lines].map((line) => expect.stringContaining(line)))
})

test('an intake that is stopped gives its right back and ends its connection, also one that it was making', async () => {
  await using under = await buildIntakeUnderTest()
  let closed = 0
  const log: EventLog = {
    ...under.log,
    close: async () => {
      closed += 1
    },
  }
  const rests: number[] = []
  const resting = under.build('intake-1', log, {
    rest: async (ms) => {
      rests.push(ms)
      if (rests.length === 3) resting.stop()
    },
  })
  await resting.run()
  expect(rests).toEqual([100, 100, 100])
  expect([closed, (await under.facts())?.runner]).toEqual([1, null])
  const connecting = under.build('intake-2', log, {
    open: async () => {
      connecting.stop()
      return log
    },
  })
  await connecting.run()
  expect([closed, (await under.facts())?.runner]).toEqual([2, null])
})

test('a stop ends the wait for an answer of the log', async () => {
  await using under = await buildIntakeUnderTest()
  const answer = Promise.withResolvers<never>()
  const waiting = Promise.withResolvers<void>()
  const log: EventLog = {
    ...under.log,
    read: () => {
      waiting.resolve()
      return answer.promise
    },
    close: async () => answer.reject(new LogError('unreachable', 'The connection was closed.')),
  }
  const intake = under.build('intake-1', log)
  const running = intake.run()
  await waiting.promise
  intake.stop()
  await running
  expect((await under.facts())?.runner).toBeNull()
})

test('the position has the time and the fingerprint of its message, also of a log with nothing to take in', async () => {
  await using under = await buildIntakeUnderTest()
  expect(await under.settle()).toBe(100)
  expect(await under.facts()).toMatchObject({ sequence: 0, storedAt: null, fingerprint: null, readSince: null })
  const isAtLast = async () => {
    const last = under.log.entries().at(-1)!
    const at = { sequence: last.sequence, storedAt: last.storedAt, fingerprint: fingerprintOf(last), readSince: null }
    expect(await under.facts()).toMatchObject(at)
  }
  for (let count = 0; count < 2; count += 1) {
    under.passMs(1_000)
    await under.append(under.message())
    expect(await under.settle()).toBe(100)
    await isAtLast()
  }
  await under.pool.query('update log_intake set read_since = $1', [new Date(under.clock.now() + 1)])
  under.passMs(5_000)
  expect(await under.settle()).toBe(100)
  await isAtLast()
  expect(under.told).toMatchObject({ failed: 0, faults: [] })
})

test('a cell waits for the reference rows that an event needs', async () => {
  await using under = await buildIntakeUnderTest()
  const arrive = (position: string) =>
    under.pool.query(
      `create or replace function reference_position() returns pg_lsn language sql as $$ select '${position}'::pg_lsn $$`,
    )
  const [first] = await under.append(under.message({ reference: '2/A' }))
  expect([await under.settle(), await under.events()]).toEqual([50, []])
  await arrive('2/9')
  expect([await under.settle(), await under.events()]).toEqual([50, []])
  await arrive('2/A')
  expect([await under.settle(), await under.events()]).toEqual([100, [first]])
  // What arrived stays.
  await arrive('0/1')
  await under.append(under.message({ reference: '1/F' }))
  expect(await under.settle()).toBe(100)
  expect(await under.events()).toHaveLength(2)
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

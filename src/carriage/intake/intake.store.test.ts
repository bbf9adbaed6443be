import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, EventId } from '../../base/id.ts'
import { beginIntake } from '../cell/reference.store.ts'
import type { CarriedEvent } from '../log/carried-event.ts'
import { LOG_SKEW_MS } from '../log/log.ts'
import {
  findIntakeFacts,
  forgetFault,
  type IntakeState,
  leaseIntake,
  noteFault,
  releaseIntake,
  type Taking,
  takeIn,
} from './intake.store.ts'

const { db, pool } = await openForFile(createTestDatabase())
const at = (minute: number) => new Date(Date.UTC(2026, 8, 11) + minute * 60_000)
const NEVER_READ: IntakeState = { incarnation: null, sequence: 0, storedAt: null, fingerprint: null, readSince: at(0) }
const lease = (runner: string) => leaseIntake(db, { runner, leaseMs: 20_000 })

/** A new beginning, with the lease of `one`. */
async function begin() {
  await pool.query('delete from log_intake')
  await beginIntake(db, new Date(at(0).getTime() + LOG_SKEW_MS))
  await lease('one')
}

function carried(account: AccountId | null, type = 'invoice.create'): CarriedEvent & { id: EventId } {
  const id = randomUUID() as EventId
  return {
    id,
    carried: { home: randomUUID(), origin: 'home', reference: null },
    event: {
      ...{ id, type, account, resource: 'invoice', action: 'create', resourceId: null, url: null, trace: null },
      ...{ isPurge: false, excludedWebhook: null, createdAt: at(1) },
    },
  }
}
const take = (change: Partial<Taking> = {}) =>
  takeIn(db, {
    ...{ isHome: false, events: [], to: { incarnation: 'a', sequence: 5 }, storedAt: at(5), fingerprint: 'five' },
    ...{ seen: NEVER_READ, runner: 'one', leaseMs: 20_000, ...change },
  })
async function listTaken(events: readonly { id: EventId }[]) {
  const ids = [events.map(({ id }) => id)]
  const { rows } = await pool.query('select document_id as id from event_occurrence where document_id = any($1)', ids)
  const { rows: queued } = await pool.query('select event_id as id from event_queue where event_id = any($1)', ids)
  expect(queued.toSorted()).toEqual(rows.toSorted())
  return events.filter(({ id }) => rows.some((row) => row.id === id))
}

test('one process has the right, until it gives it back or its lease ends', async () => {
  expect(await lease('one')).toBeUndefined()
  await begin()
  expect(await lease('one')).toEqual(NEVER_READ)
  expect(await lease('two')).toBeUndefined()
  await releaseIntake(db, { runner: 'two' })
  expect(await findIntakeFacts(db)).toMatchObject({ runner: 'one' })
  await releaseIntake(db, { runner: 'one' })
  expect(await findIntakeFacts(db)).toMatchObject({ runner: null })
  expect(await lease('two')).toBeDefined()
  await pool.query(`update log_intake set lease_until = now() - interval '1 second'`)
  expect(await findIntakeFacts(db)).toMatchObject({ runner: null })
  expect(await lease('one')).toBeDefined()
})

test('the position moves with the events, from the one that was read, by who has the right alone', async () => {
  await begin()
  const before = await findIntakeFacts(db)
  const moved = { isLeased: true, taken: 0, readSince: null }
  await pool.query(`update log_intake set lease_until = now() - interval '1 second'`)
  expect(await take()).toEqual(moved)
  const facts = await findIntakeFacts(db)
  const place = { incarnation: 'a', sequence: 5, storedAt: at(5), fingerprint: 'five' }
  expect(facts).toMatchObject({ ...place, readSince: null, runner: 'one' })
  expect(facts!.takenAt > before!.takenAt).toBe(true)
  const seen: IntakeState = { ...NEVER_READ, incarnation: 'a', sequence: 5, readSince: null }
  const to = { incarnation: 'a', sequence: 6 }
  const nothing = { isLeased: false, taken: 0, readSince: null }
  for (const wrong of [{ incarnation: null }, { incarnation: 'b' }, { sequence: 4 }])
    expect(await take({ seen: { ...seen, ...wrong }, to })).toEqual(nothing)
  expect(await take({ seen, to, runner: 'two' })).toEqual(nothing)
  expect(await findIntakeFacts(db)).toEqual(facts)
  // The log does not have the last message any more: its time stays.
  expect(await take({ seen, to, storedAt: null, fingerprint: null })).toEqual(moved)
  expect(await findIntakeFacts(db)).toMatchObject({ sequence: 6, storedAt: at(5), fingerprint: null, runner: 'one' })
})

test('who lost the right, or reads another position, writes no event', async () => {
  await begin()
  const account = randomUUID() as AccountId
  await pool.query(`insert into account_fence (account, version, state) values ($1, 1, 'open')`, [account])
  const event = carried(account)
  expect(await take({ events: [event], runner: 'two' })).toMatchObject({ isLeased: false, taken: 0 })
  expect(await take({ events: [event], seen: { ...NEVER_READ, sequence: 1 } })).toMatchObject({ taken: 0 })
  expect(await listTaken([event])).toEqual([])
  expect(await take({ events: [event, event] })).toMatchObject({ isLeased: true, taken: 1 })
  expect(await listTaken([event])).toEqual([event])
})

test('a cell takes in the events of accounts that are here, or on their way here', async () => {
  await begin()
  const states = ['open', 'held', 'closed', 'gone'] as const
  const events = new Map<string, CarriedEvent & { id: EventId }>()
  for (const state of states) {
    const account = randomUUID() as AccountId
    await pool.query('insert into account_fence (account, version, state) values ($1, 1, $2)', [account, state])
    events.set(state, carried(account))
  }
  events.set('unknown', carried(randomUUID() as AccountId)).set('none', carried(null))
  const all = [...events.values()]
  expect(await take({ events: all })).toMatchObject({ taken: 2 })
  expect(await listTaken(all)).toEqual([events.get('open'), events.get('held')])
})

test('home takes in the events of types that a global webhook subscribes to now', async () => {
  await begin()
  const [global, own, account] = [randomUUID(), randomUUID(), await buildIdentityRows(db).account()]
  for (const [webhook, owner] of [
    [global, null],
    [own, account],
  ])
    await pool.query(
      `insert into webhook (document_id, url, is_global, account, created_at, updated_at)
       values ($1, 'https://example.com/', $2::uuid is null, $2, now(), now())`,
      [webhook, owner],
    )
  const types = { 'invoice.create': [global, null], 'invoice.update': [own, null], 'invoice.delete': [global, at(0)] }
  for (const [name, [webhook, deletedAt]] of Object.entries(types)) {
    const type = randomUUID()
    await pool.query(
      `insert into event (document_id, internal, account_scope, created_at, updated_at)
       values ($1, $2, 'account', now(), now())`,
      [type, name],
    )
    await pool.query(
      `insert into webhook_event (document_id, webhook, event, deleted_at, created_at, updated_at)
       values ($1, $2, $3, $4, now(), now())`,
      [randomUUID(), webhook, type, deletedAt],
    )
  }
  const events = [...Object.keys(types), 'invoice.find-one'].map((type) => carried(randomUUID() as AccountId, type))
  expect(await take({ isHome: true, events })).toMatchObject({ taken: 1 })
  expect(await listTaken(events)).toEqual(events.slice(0, 1))
})

test('an instant that was asked for meanwhile is read from, and the earliest of several', async () => {
  const askFor = (since: Date) => pool.query('update log_intake set read_since = least(read_since, $1)', [since])
  await begin()
  await askFor(at(2))
  expect(await take()).toEqual({ isLeased: true, taken: 0, readSince: null })
  const seen: IntakeState = { ...NEVER_READ, incarnation: 'a', sequence: 5, readSince: null }
  await askFor(at(4))
  await askFor(at(3))
  await askFor(at(6))
  expect(await take({ seen })).toEqual({ isLeased: true, taken: 0, readSince: at(3) })
  expect(await findIntakeFacts(db)).toMatchObject({ readSince: at(3) })
  expect(await take({ seen: { ...seen, readSince: at(3) } })).toMatchObject({ readSince: null })
})

test('a fault is kept until an operator has dealt with it, with the time from which events may be missing', async () => {
  await begin()
  await take()
  const note = (fault: 'ahead' | 'expired', since: number, runner = 'one') =>
    noteFault(db, { runner, fault, since: at(since), now: at(30 + since) })
  await note('expired', 1, 'two')
  expect(await findIntakeFacts(db)).toMatchObject({ fault: null, readSince: null })
  await note('ahead', 4)
  expect(await findIntakeFacts(db)).toMatchObject({
    fault: 'ahead',
    faultAt: at(34),
    readSince: at(4),
    missingSince: null,
  })
  await note('expired', 6)
  const expired = { fault: 'expired', faultAt: at(36), readSince: at(4), missingSince: at(5) }
  expect(await findIntakeFacts(db)).toMatchObject(expired)
  await pool.query('update log_intake set stored_at = $1', [at(9)])
  await note('expired', 7)
  expect(await findIntakeFacts(db)).toMatchObject({ missingSince: at(5) })
  await note('ahead', 8)
  expect(await findIntakeFacts(db)).toMatchObject({ fault: 'ahead', missingSince: at(5) })
  await forgetFault(db)
  expect(await findIntakeFacts(db)).toMatchObject({ fault: null, faultAt: null, missingSince: null, readSince: at(4) })
})

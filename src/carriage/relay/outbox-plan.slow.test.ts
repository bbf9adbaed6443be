import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { openWatched, type WatchedDatabase } from '../../../test/harness/plan/explain.ts'
import { expectFewReads, keepUnanalysed } from '../../../test/harness/plan/plan-reads.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { type Database, INDEX_PLANS } from '../../postgres/statement/database.ts'
import {
  advanceRepublication,
  beginRepublication,
  leaseRelay,
  openOutbox,
  readRepublished,
  takeWaiting,
} from './outbox.store.ts'
import { readOutboxFacts } from './outbox-facts.store.ts'

const ROWS = 20_000
const LIMIT = 250
const TABLES = ['event_outbox', 'event_occurrence', 'event_log']
const OWN = { relay: 'one', leaseMs: 60_000 }
const END = { incarnation: 'a', sequence: 1 }

/** Executed on tables that were never analysed, with plans that were made while these were new, or had a few rows. */
describe.each([0, 3])(`plans of the relay, made for %s events, among ${ROWS}`, (known) => {
  const nowMs = buildManualClock().now()
  let database: TestDatabase
  let watched: WatchedDatabase

  const take = async (db: Database, positions: readonly string[] = []) => {
    const taken = await takeWaiting(db, { ...OWN, confirmed: { positions, end: END, own: undefined }, limit: LIMIT })
    return taken?.events ?? []
  }
  const again = (db: Database, after: number) =>
    readRepublished(db, { after: new Date(after), ordinal: '0', until: new Date(nowMs), limit: LIMIT })

  beforeAll(async () => {
    database = await createTestDatabase({ isOwn: true })
    watched = openWatched(database, INDEX_PLANS)
    await openOutbox(database.db)
    await keepUnanalysed(database.db, TABLES)
    await fill(database.db, known, nowMs)
    if (known > 0) await sql`analyze ${sql.join(TABLES.map((table) => sql.table(table)))}`.execute(database.db)
    await leaseRelay(watched.db, OWN)
    await take(watched.db)
    await again(watched.db, 0)
    await readOutboxFacts(watched.db, { limit: 10 })
    await fill(database.db, ROWS, nowMs)
  })
  afterAll(async () => {
    await watched[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })

  test('a batch reads the events that it returns, and deletes those before by their keys', async () => {
    const small = ['event_log']
    const first = await expectFewReads(watched, { most: 3 * LIMIT, small }, (db) => take(db))
    expect(first).toHaveLength(LIMIT)
    const positions = first.map(({ position }) => position)
    const second = await expectFewReads(watched, { most: 5 * LIMIT, small }, (db) => take(db, positions))
    expect(second[0]?.position).toBe(String(Number(positions.at(-1)) + 1))
  })

  test('a republication reads the events of its batch', async () => {
    const events = await expectFewReads(watched, { most: 2 * LIMIT }, (db) => again(db, nowMs - 5_000_000))
    expect(events).toHaveLength(LIMIT)
  })

  test('the facts read as many rows as they count', async () => {
    const facts = await expectFewReads(watched, { most: 100, small: ['event_log', 'pg_trigger'] }, (db) =>
      readOutboxFacts(db, { limit: 10 }),
    )
    expect(facts).toMatchObject({ isOpen: true, waiting: 10 })
  })

  test('a republication begins and moves on with a row of each index', async () => {
    const given = { after: new Date(0), now: new Date(nowMs) }
    await expectFewReads(watched, { most: 20, small: ['event_log'] }, (db) => beginRepublication(db, given))
    const step = { ...OWN, end: END, own: undefined, seen: new Date(0), next: null }
    expect(
      await expectFewReads(watched, { most: 20, small: ['event_log'] }, (db) => advanceRepublication(db, step)),
    ).toBe(true)
  })
})

/** Events, one a second, in the order of their ids. */
async function fill(db: Database, rows: number, nowMs: number): Promise<void> {
  await sql`
    insert into event_occurrence (document_id, event, resource, action, created_at)
    select gen_random_uuid(), 'contract.create', 'contract', 'create',
      ${new Date(nowMs)}::timestamptz - (${rows}::int - n) * interval '1 s'
    from generate_series(1, ${rows}::int) n`.execute(db)
}

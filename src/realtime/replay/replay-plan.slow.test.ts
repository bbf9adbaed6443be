import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { openWatched, type WatchedDatabase } from '../../../test/harness/plan/explain.ts'
import { expectFewReads, keepUnanalysed } from '../../../test/harness/plan/plan-reads.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId, EventId } from '../../base/id.ts'
import { type Database, INDEX_PLANS } from '../../postgres/statement/database.ts'
import { REPLAY_LIMIT, type ReplayParams, readReplay } from './replay.store.ts'

/** Ended messages, one a second, of which half belong to one account; every hundredth of these is of one contract. */
const ROWS = 5_000
const SECOND_MS = 1_000
const TABLES = ['realtime_message_open', 'realtime_message_ended', 'event_occurrence']

/** Executed on tables that were never analysed, with plans that were made while these were new, or had a few rows. */
describe.each([0, 3])(`plans of a replay, made for %s messages, among ${ROWS}`, (known) => {
  const nowMs = buildManualClock().now()
  const [busy, quiet, contract] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  let database: TestDatabase
  let watched: WatchedDatabase

  beforeAll(async () => {
    database = await createTestDatabase({ isOwn: true })
    watched = openWatched(database, INDEX_PLANS)
    await keepUnanalysed(database.db, TABLES)
    const others = { busy: crypto.randomUUID(), quiet: crypto.randomUUID(), contract: crypto.randomUUID() }
    await fill(database.db, { ...others, rows: known, nowMs })
    if (known > 0) await sql`analyze ${sql.join(TABLES.map((table) => sql.table(table)))}`.execute(database.db)
    for (const channel of [null, contract]) await readReplay(watched.db, position({ contract: channel }))
    await fill(database.db, { busy, quiet, contract, rows: ROWS, nowMs })
  })
  afterAll(async () => {
    await watched[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })

  const position = (change: Partial<ReplayParams & { awayMs: number }> = {}): ReplayParams => ({
    account: busy as AccountId,
    contract: null,
    after: null,
    since: new Date(nowMs - (change.awayMs ?? 60 * SECOND_MS)),
    ...change,
  })
  const read = (most: number, change: Partial<ReplayParams & { awayMs: number }> = {}) =>
    expectFewReads(watched, { most }, (db) => readReplay(db, position(change)))

  test('an account: those since the position', async () => {
    const rows = await read(250)
    expect(rows).toHaveLength(33)
    expect(await read(100, { account: quiet as AccountId, awayMs: 0 })).toHaveLength(3)
  })

  test('an account: no more than the limit, however far back the position is', async () => {
    expect(await read(REPLAY_LIMIT * 5, { awayMs: ROWS * SECOND_MS })).toHaveLength(REPLAY_LIMIT)
  })

  test('a contract: its own, however many its account has since', async () => {
    expect(await read(200, { contract, awayMs: 1_000 * SECOND_MS })).toHaveLength(6)
  })

  test('a last message: by its id', async () => {
    const { rows } = await database.pool.query(
      'select document_id from realtime_message_ended where account = $1 order by created_at desc limit 1',
      [busy],
    )
    expect(await read(100, { after: rows[0].document_id as EventId, awayMs: ROWS * SECOND_MS })).toHaveLength(3)
  })
})

interface Filling {
  busy: string
  quiet: string
  contract: string
  rows: number
  nowMs: number
}

async function fill(db: Database, { busy, quiet, contract, rows, nowMs }: Filling): Promise<void> {
  await sql`
    with given as (
      select gen_random_uuid() as id, n, case when n % 2 = 0 then ${busy}::uuid else ${quiet}::uuid end as account,
        case when n % 200 = 0 then ${contract}::uuid end as contract,
        ${new Date(nowMs)}::timestamptz - n * interval '1 s' as at
      from generate_series(0, ${rows}::int - 1) n
    ), recorded as (
      insert into event_occurrence (document_id, event, account, resource, action, routed_at, created_at)
      select id, 'contract.create', account, 'contract', 'create', at, at from given
    )
    insert into realtime_message_ended (document_id, account, contract, event, status, attempts, results, created_at,
      last_attempt_at, ended_at, fence)
    select id, account, contract, 'contract.create', 'published', 1, 1, at, at, at, 1 from given`.execute(db)
}

import { sql } from 'kysely'
import type { EventId } from '../../../src/base/id.ts'
import type { ClaimRequest, RoutingPart } from '../../../src/delivery/policy.ts'
import { buildRouter, type RouterDeps } from '../../../src/delivery/routing/router.ts'
import { fragment } from '../../../src/postgres/statement/fragment.ts'
import { buildListeningLogger } from '../app/listening-logger.ts'
import { createTestDatabase } from '../database/database.ts'
import { buildManualClock } from '../run/manual-clock.ts'
import { buildLedger } from './ledger.ts'
import { buildProbeDispatcher } from './probe-dispatcher.ts'

/** An event of no account, to be routed. */
export const DRAFT = {
  type: 'contract.create',
  accountScope: 'account',
  account: null,
  resource: 'contract',
  action: 'create',
  resourceId: null,
  url: null,
} as const

/** A dispatcher of a policy that writes `fanOut` rows for each event into a table of this test, and what it was given. */
function buildProbe(name: string) {
  const probe = {
    fanOut: 1,
    slots: 0,
    hasRoom: true,
    nextDueAt: null as Date | null,
    accepted: [] as unknown[],
    notified: 0,
    leaks: 0,
    /** Statements that route, and that look for parts of an event that was set aside. */
    looks: 0,
    partLooks: 0,
    /** Whether events are set aside instead. */
    isAside: false,
    /** Rows of an event that was set aside, and of the parts that were written of them; a broken part fails. */
    left: 0,
    parts: [] as number[],
    isBroken: false,
  }
  /** Claims as many rows as there are slots. */
  const write = fragment<{ fanOut: number; fastSlots: number; dueAt: Date | null }>(
    name,
    `
      ${name}_opened as (
        insert into routed_row select '${name}', document_id, n from ${name}_matched, generate_series(1, $fanOut::int) n
        returning event_id as id
      ),
      ${name}_work as (
        select json_build_array(r.document_id, n) as work from ${name}_matched r, generate_series(1, $fanOut::int) n
        order by n, r.document_id limit $fastSlots
      ),
      ${name}_next as (select $dueAt::timestamptz as due_at)`,
  )
  const putAside = fragment<object>(
    `${name} aside`,
    `
      ${name}_aside as materialized (select document_id as event_id from ${name}_matched),
      ${name}_opened as (select null::uuid as id where false),
      ${name}_work as (select null::json as work where false),
      ${name}_next as (select null::timestamptz as due_at)`,
  )
  const buildRouting = ({ fastSlots }: ClaimRequest): RoutingPart => {
    probe.looks += 1
    const matched = 'select document_id from routed'
    if (probe.isAside) return { matched, written: putAside({}), rowsOfEvent: 1 }
    return { matched, written: write({ fanOut: probe.fanOut, fastSlots, dueAt: probe.nextDueAt }) }
  }
  const writePart = fragment<{ rows: number; isBroken: boolean }>(
    name,
    `
      ${name}_reached as (select gen_random_uuid() as event_id, false as is_last where $rows::int > 0),
      ${name}_opened as (
        select n as id from generate_series(1, $rows::int / case when $isBroken::boolean then 0 else 1 end) n),
      ${name}_work as (select null::json as work where false),
      ${name}_next as (select null::timestamptz as due_at)`,
  )
  const buildFanOut = (_request: ClaimRequest, limit: number) => {
    probe.partLooks += 1
    const rows = Math.min(limit, probe.left)
    if (rows > 0) probe.parts.push(rows)
    if (!probe.isBroken) probe.left -= rows
    return writePart({ rows, isBroken: probe.isBroken })
  }
  const dispatcher = buildProbeDispatcher(probe, { name, buildRouting, buildFanOut })
  return { probe, dispatcher }
}

/**
 * Opens a router, and what builds further ones, over two policies of its own on a database with the table `routed_row`.
 * `onLine` takes the messages of its log.
 */
export async function openRouter(onLine: (message: string) => void = () => {}) {
  const database = await createTestDatabase()
  const { db } = database
  await sql`create table routed_row (policy text, event_id uuid, nth integer)`.execute(db)
  const clock = buildManualClock()
  const ledger = buildLedger(db, clock)
  const [first, second] = [buildProbe('first'), buildProbe('second')]
  const build = (dispatchers: RouterDeps['dispatchers'] = [first.dispatcher], rest?: RouterDeps['rest']) =>
    buildRouter({ clock, db, logger: buildListeningLogger(onLine), dispatchers, ...(rest && { rest }) })
  const listRows = async () => {
    const { rows } = await sql<{ policy: string; event_id: EventId; nth: number }>`select * from routed_row`.execute(db)
    return rows
  }
  const countWaiting = async () => {
    const { rows } = await sql<{ count: number }>`select count(*) from event_queue`.execute(db)
    return rows[0]?.count
  }
  const record = (count = 1) => ledger.recordMany('contract.create', { count })
  const rest = { database, db, clock, ledger, first, second, build, listRows, countWaiting, record }
  const dispose = async () => {
    // Without it the database is as it was, and serves the next test.
    await sql`drop table routed_row`.execute(db)
    await database[Symbol.asyncDispose]()
  }
  return { ...rest, [Symbol.asyncDispose]: dispose }
}

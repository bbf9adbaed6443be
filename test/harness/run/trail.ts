import type pg from 'pg'
import type { TestAnswer, TestApp } from '../app/app.ts'

/** An event that a call recorded. */
export interface TrailEvent {
  event: string
  account: string | null
  resource_id: string | null
  url: string | null
  is_purge: boolean
}

/** An audit entry of a call. */
export interface TrailEntry {
  action: string
  outcome: string
  user: string | null
  account: string | null
  target: string | null
  request_id: string | null
}

/** An answer, with the events and audit entries of its call. */
export interface Trail {
  answer: TestAnswer
  events: TrailEvent[]
  audit: TrailEntry[]
}

/** Sends a call and returns its new events, and its audit entries: new ones, and those that count it with its equals. */
export async function followCall(app: TestApp, call: () => Promise<TestAnswer>): Promise<Trail> {
  const { pool } = app.database
  await app.app.equalEntries.flush()
  const before = await listColumn(pool, 'select document_id as entry from event_occurrence')
  const entries = await listColumn(pool, `select document_id::text || ' ' || count as entry from audit_entry`)
  const answer = await call()
  await app.app.equalEntries.flush()
  const events = await pool.query<TrailEvent>(
    `select event, account, resource_id, url, is_purge from event_occurrence
     where not (document_id = any($1::uuid[])) order by document_id`,
    [before],
  )
  // An entry of before stands for this call as well when its count has grown.
  const audit = await pool.query<TrailEntry>(
    `select action, outcome, "user", account, target, request_id from audit_entry
     where not (document_id::text || ' ' || count = any($1::text[])) order by document_id`,
    [entries],
  )
  return { answer, events: events.rows, audit: audit.rows }
}

async function listColumn(pool: pg.Pool, query: string): Promise<string[]> {
  const { rows } = await pool.query<{ entry: string }>(query)
  return rows.map(({ entry }) => entry)
}

/** Every row of every table as text, like a dump of the database. */
export async function dumpDatabase(pool: pg.Pool): Promise<string> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'`,
  )
  const texts: string[] = []
  for (const { name } of tables) {
    const { rows } = await pool.query<{ text: string }>(`select one::text as text from ${name} one`)
    texts.push(...rows.map((row) => row.text))
  }
  return texts.join('\n')
}

import type { TestApp } from '../app/app.ts'
import { COUNT_ADDED } from './delivery-counts.ts'

/** The values of a ledger row. Times are ages in milliseconds before the clock of the app. */
export interface LedgerRowSpec {
  webhook: string
  status: string
  event?: string
  eventId?: string
  attempts?: number
  isTest?: boolean
  createdAgeMs?: number
  /** Of an ended row; that of its creation unless given. */
  endedAgeMs?: number
  /** Of an open row; due now unless given. */
  dueAgeMs?: number
  /** Of an open row that a worker posts: its lease runs for so long. */
  leasedForMs?: number
}

/** Writes one ledger row in any state; returns its id. */
export async function addLedgerRow(app: TestApp, spec: LedgerRowSpec): Promise<string> {
  const [id] = await addLedgerRows(app, { ...spec, count: 1 })
  return id!
}

/** Writes `count` ledger rows of a kind, each with an event id of its own unless one is given; answers their ids. */
export async function addLedgerRows(app: TestApp, spec: LedgerRowSpec & { count: number }): Promise<string[]> {
  const { pool } = app.database
  const at = (ageMs: number) => new Date(app.clock.now() - ageMs)
  const { createdAgeMs = 0, dueAgeMs = 0, leasedForMs, event = 'contract.create' } = spec
  const isEnded = spec.status !== 'pending' && spec.status !== 'retrying'
  const common = [spec.webhook, event, spec.eventId ?? null, spec.status, spec.attempts ?? 1, spec.isTest ?? false]
  const values = [...common, at(createdAgeMs), spec.count]
  const rows = isEnded
    ? await pool.query(INSERT_ENDED, [...values, at(spec.endedAgeMs ?? createdAgeMs)])
    : leasedForMs === undefined
      ? await pool.query(INSERT_WAITING, [...values, at(dueAgeMs)])
      : await pool.query(INSERT_CLAIMED, [...values, at(0), at(-leasedForMs)])
  await pool.query(COUNT_ADDED, [at(createdAgeMs), spec.status, spec.count])
  return rows.rows.map((row) => row.document_id)
}

const COMMON = `document_id, webhook, event, event_id, status, attempts, is_test, created_at, updated_at`
const VALUES = `gen_random_uuid(), $1::uuid, $2, coalesce($3::uuid, gen_random_uuid()), $4, $5::int, $6::boolean,
  $7::timestamptz, $7::timestamptz`

const INSERT_ENDED = `
  insert into webhook_dispatch_ended (${COMMON}, ended_at)
  select ${VALUES}, $9::timestamptz from generate_series(1, $8::int) returning document_id`

/** With the head of its webhook. */
const INSERT_WAITING = `
  with opened as (
    insert into webhook_dispatch_open (${COMMON}, next_attempt_at)
    select ${VALUES}, $9::timestamptz from generate_series(1, $8::int) returning document_id
  ), queued as (
    insert into webhook_queue (webhook, visit_at, is_held)
    select document_id, $9::timestamptz, not is_actived or deleted_at is not null from webhook where document_id = $1
    on conflict (webhook) do update set visit_at = least(webhook_queue.visit_at, excluded.visit_at)
  )
  select document_id from opened`

/** With the worker that posts it. */
const INSERT_CLAIMED = `
  with worker as (
    insert into delivery_worker (worker_id, lease_until) values ('somebody', $10)
    on conflict (worker_id) do update set lease_until = excluded.lease_until
  )
  insert into webhook_dispatch_open (${COMMON}, lease_owner, last_attempt_at, fence)
  select ${VALUES}, 'somebody', $9::timestamptz, 1 from generate_series(1, $8::int) returning document_id`

/** Ends rows that wait, as an operation of the past would have: the one with this id, or all. */
export async function endRows(app: TestApp, status: string, id: string | null = null): Promise<void> {
  await app.database.pool.query(
    `with opened as (
       delete from webhook_dispatch_open where next_attempt_at is not null and document_id = coalesce($2, document_id)
       returning *
     )
     insert into webhook_dispatch_ended
       (${COMMON}, account, last_attempt_at, last_status_code, last_error, last_duration_ms, fence, ended_at)
     select document_id, webhook, event, event_id, $1, attempts, is_test, created_at, updated_at, account,
       last_attempt_at, last_status_code, last_error, last_duration_ms, fence, updated_at
     from opened`,
    [status, id],
  )
}

/** Creates a global webhook; returns its id. */
export async function addWebhook(app: TestApp): Promise<string> {
  const body = { url: 'https://hooks.example.com/', is_global: true }
  return (await app.admin('POST', '/api/v3/webhook/webhook', body)).body.data.document_id
}

/** Empties the ledger, the events and the webhooks, for an empty start of a test. */
export async function clearLedger(app: TestApp): Promise<void> {
  await app.database.pool.query(
    `truncate webhook, event_occurrence, event_queue, webhook_dispatch_open, webhook_dispatch_ended, webhook_attempt,
      webhook_queue, delivery_worker, webhook_delivery_minute cascade`,
  )
}

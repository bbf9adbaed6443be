import { CompiledQuery, sql } from 'kysely'
import {
  type AccountId,
  buildIdMaker,
  type DispatchId,
  type EventId,
  type EventTypeId,
  type WebhookId,
} from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { recordEvents } from '../../../src/event/occurrence/event.ts'
import type { AccountScope } from '../../../src/http/route/route.ts'
import type { Database } from '../../../src/postgres/statement/database.ts'
import type { AttemptTrigger, DispatchStatus } from '../../../src/webhook/delivery/outcome.ts'
import type { ManualClock } from '../run/manual-clock.ts'
import { COUNT_ADDED } from './delivery-counts.ts'

/** Fields of a webhook that a test writes straight into the table. */
export interface WebhookRow {
  url?: string
  account?: AccountId | null
  isActived?: boolean
  isDeleted?: boolean
  secretEncrypted?: string | null
  consecutiveFailures?: number
  maxPerSecond?: number
  mode?: 'push' | 'pull'
  createdAt?: Date
  /** Event types it subscribes to. */
  events?: readonly string[]
}

/** Fields of ledger rows that a test writes. */
export interface DispatchRows {
  count?: number
  status?: DispatchStatus
  attempts?: number
  trigger?: AttemptTrigger
  isTest?: boolean
  dueAt?: Date
  /** Given, a worker has claimed the rows, and its lease runs until then. */
  leaseUntil?: Date | null
  /** That worker; `worker-lost` unless given. */
  leaseOwner?: string
  createdAt?: Date
}

/** Writes accounts, webhooks, event types, events and ledger rows for the tests of stores. Times are the clock's. */
export function buildLedger(db: Database, clock: ManualClock) {
  const ids = buildIdMaker(clock, systemRandom)
  const deps = { ids, enableApiEventQueue: true, workerId: 'worker-a' }
  const now = () => new Date(clock.now())
  const stamps = () => ({ created_at: now(), updated_at: now() })

  async function addAccount(): Promise<AccountId> {
    const id = ids.next<'account'>() as AccountId
    await db
      .insertInto('account')
      .values({ document_id: id, name: 'Example', ...stamps() })
      .execute()
    return id
  }

  async function addEventType(internal: string, accountScope: AccountScope = 'account', isActived = true) {
    const id = ids.next<'event type'>() as EventTypeId
    const row = { document_id: id, internal, account_scope: accountScope, is_actived: isActived, ...stamps() }
    await db.insertInto('event').values(row).execute()
    return id
  }

  async function subscribe(webhook: WebhookId, internal: string): Promise<void> {
    await sql`insert into webhook_event (document_id, webhook, event, created_at, updated_at)
      select ${ids.next()}, ${webhook}, document_id, ${now()}, ${now()} from event where internal = ${internal}`.execute(
      db,
    )
  }

  async function addWebhook(row: WebhookRow = {}): Promise<WebhookId> {
    const id = ids.next<'webhook'>() as WebhookId
    const account = row.account ?? null
    await db
      .insertInto('webhook')
      .values({
        document_id: id,
        url: row.url ?? (row.mode === 'pull' ? '' : 'https://subscriber.example.com/hook'),
        is_global: account === null,
        account,
        is_actived: row.isActived ?? true,
        secret_encrypted: row.secretEncrypted ?? null,
        consecutive_failures: row.consecutiveFailures ?? 0,
        max_per_second: row.maxPerSecond ?? null,
        ...(row.mode && { mode: row.mode }),
        created_at: row.createdAt ?? now(),
        updated_at: now(),
        deleted_at: row.isDeleted ? now() : null,
      })
      .execute()
    for (const event of row.events ?? []) await subscribe(id, event)
    return id
  }

  /** Records events through the feature itself, as an operation would. */
  async function recordMany(
    event: string,
    options: { account?: AccountId | null; scope?: AccountScope; count?: number } = {},
  ) {
    const [resource = '', action = ''] = event.split('.')
    const draft = {
      type: event,
      accountScope: options.scope ?? 'account',
      account: options.account ?? null,
      resource,
      action,
      resourceId: null,
      url: null,
    }
    const drafts = Array.from({ length: options.count ?? 1 }, () => draft)
    return recordEvents(deps, db, drafts, now())
  }

  /** Writes ledger rows with one event each; returns their ids, the first due first. */
  async function addDispatches(webhook: WebhookId, rows: DispatchRows = {}): Promise<DispatchId[]> {
    const list = Array.from({ length: rows.count ?? 1 }, () => ({
      id: ids.next<'dispatch'>(),
      event: ids.next<'event'>(),
    }))
    const createdAt = rows.createdAt ?? now()
    await sql`insert into event_occurrence (document_id, event, resource, action, routed_at, created_at)
      select id, 'contract.create', 'contract', 'create', ${createdAt}::timestamptz, ${createdAt}
      from unnest(${list.map((item) => item.event)}::uuid[]) as x (id)`.execute(db)
    const values = {
      webhook,
      ids: list.map((item) => item.id),
      events: list.map((item) => item.event),
      status: rows.status ?? 'pending',
      attempts: rows.attempts ?? 0,
      trigger: rows.trigger ?? 'schedule',
      isTest: rows.isTest ?? false,
      createdAt,
    }
    const { leaseUntil = null, leaseOwner = 'worker-lost', dueAt = now() } = rows
    if (values.status !== 'pending' && values.status !== 'retrying') await insertEnded(db, values)
    else if (leaseUntil === null) await insertWaiting(db, { ...values, dueAt })
    else await insertClaimed(db, { ...values, leaseUntil, leaseOwner, claimedAt: now() })
    await db.executeQuery(CompiledQuery.raw(COUNT_ADDED, [createdAt, values.status, list.length]))
    return list.map((item) => item.id as DispatchId)
  }

  async function readDispatch(id: DispatchId) {
    return db.selectFrom('webhook_dispatch').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()
  }

  async function readWebhook(id: WebhookId) {
    return db.selectFrom('webhook').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()
  }

  /** The heads of the queue: when each webhook is visited next, and whether it rests. */
  async function readHeads() {
    const rows = await db.selectFrom('webhook_queue').selectAll().execute()
    return new Map(rows.map((row) => [row.webhook as WebhookId, { visitAt: row.visit_at, isHeld: row.is_held }]))
  }

  /** The ledger as `webhook event_id` pairs, for rows that were routed. */
  async function listRouted(): Promise<{ webhook: WebhookId; event_id: EventId }[]> {
    const rows = await db.selectFrom('webhook_dispatch').select(['webhook', 'event_id']).execute()
    return rows as { webhook: WebhookId; event_id: EventId }[]
  }

  return {
    ids,
    deps,
    now,
    addAccount,
    addEventType,
    subscribe,
    addWebhook,
    recordMany,
    addDispatches,
    readDispatch,
    readWebhook,
    readHeads,
    listRouted,
  }
}

export type Ledger = ReturnType<typeof buildLedger>

interface InsertedRows {
  webhook: WebhookId
  ids: readonly string[]
  events: readonly string[]
  status: DispatchStatus
  attempts: number
  trigger: AttemptTrigger
  isTest: boolean
  createdAt: Date
}

const pairs = (rows: InsertedRows) => sql`unnest(${rows.ids}::uuid[], ${rows.events}::uuid[]) as x (id, event_id)`

async function insertEnded(db: Database, rows: InsertedRows): Promise<void> {
  await sql`insert into webhook_dispatch_ended (document_id, webhook, event_id, event, status, attempts, attempt_trigger,
      is_test, ended_at, created_at, updated_at)
    select id, ${rows.webhook}, event_id, 'contract.create', ${rows.status}, ${rows.attempts}, ${rows.trigger},
      ${rows.isTest}, ${rows.createdAt}, ${rows.createdAt}, ${rows.createdAt}
    from ${pairs(rows)}`.execute(db)
}

/** With the head of their webhook; it rests when the webhook does. */
async function insertWaiting(db: Database, rows: InsertedRows & { dueAt: Date }): Promise<void> {
  await sql`with opened as (
      insert into webhook_dispatch_open (document_id, webhook, event_id, event, status, attempts, attempt_trigger,
        is_test, next_attempt_at, created_at, updated_at)
      select id, ${rows.webhook}, event_id, 'contract.create', ${rows.status}, ${rows.attempts}, ${rows.trigger},
        ${rows.isTest}, ${rows.dueAt}::timestamptz, ${rows.createdAt}, ${rows.createdAt}
      from ${pairs(rows)} returning webhook, next_attempt_at
    )
    insert into webhook_queue (webhook, visit_at, is_held)
    select o.webhook, min(o.next_attempt_at), not w.is_actived or w.deleted_at is not null
    from opened o join webhook w on w.document_id = o.webhook group by o.webhook, w.document_id
    on conflict (webhook) do update set visit_at = least(webhook_queue.visit_at, excluded.visit_at)`.execute(db)
}

/** With the worker that claimed them. */
async function insertClaimed(
  db: Database,
  rows: InsertedRows & { leaseUntil: Date; leaseOwner: string; claimedAt: Date },
): Promise<void> {
  await sql`with worker as (
      insert into delivery_worker (worker_id, lease_until) values (${rows.leaseOwner}, ${rows.leaseUntil})
      on conflict (worker_id) do update set lease_until = excluded.lease_until
    )
    insert into webhook_dispatch_open (document_id, webhook, event_id, event, status, attempts, attempt_trigger, is_test,
      lease_owner, last_attempt_at, fence, created_at, updated_at)
    select id, ${rows.webhook}, event_id, 'contract.create', ${rows.status}, ${rows.attempts}, ${rows.trigger},
      ${rows.isTest}, ${rows.leaseOwner}, ${rows.claimedAt}, 1, ${rows.createdAt}, ${rows.createdAt}
    from ${pairs(rows)}`.execute(db)
}

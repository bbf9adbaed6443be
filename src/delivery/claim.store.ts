import { sql } from 'kysely'
import type { AccountId, DispatchId, EventId, WebhookId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import type { AttemptTrigger } from './outcome.ts'

/** Serializes claims, so that the cap of a webhook holds over all processes. Any constant of our own. */
const CLAIM_LOCK = 7_320_115

/** `waiting`: the webhooks that have open rows, found by jumping along the index from one to the next. */
const WAITING_WEBHOOKS = sql`waiting (webhook) as (
      (select d.webhook from webhook_dispatch d where d.status in ('pending', 'retrying') order by d.webhook limit 1)
      union all
      select (
        select d.webhook from webhook_dispatch d
        where d.status in ('pending', 'retrying') and d.webhook > waiting.webhook order by d.webhook limit 1)
      from waiting where waiting.webhook is not null
    )`

/** A dispatch that this process may post now: everything one attempt needs. */
export interface ClaimedDispatch {
  id: DispatchId
  /** Grows with every claim; a result under an older one is void. */
  fence: number
  /** The number of this attempt, 1-based, never reset. */
  attempt: number
  trigger: AttemptTrigger
  isTest: boolean
  createdAt: Date
  webhook: { id: WebhookId; url: string; secretEncrypted: string | null }
  event: {
    id: EventId
    type: string
    createdAt: Date
    account: AccountId | null
    resource: string
    action: string
    resourceId: string | null
    url: string | null
    /** The trace of the request that caused it, as text; null when none did. */
    trace: string | null
  }
}

interface ClaimedColumns {
  document_id: DispatchId
  fence: number
  attempts: number
  attempt_trigger: AttemptTrigger
  is_test: boolean
  created_at: Date
  webhook: WebhookId
  webhook_url: string
  secret_encrypted: string | null
  event_id: EventId
  event: string
  event_created_at: Date
  account: AccountId | null
  resource: string
  action: string
  resource_id: string | null
  url: string | null
  trace_context: string | null
}

export interface ClaimRequest {
  workerId: string
  now: Date
  leaseUntil: Date
  /** Free places for webhooks that answer promptly. */
  fastPlaces: number
  /** Free places for those that do not (docs/contract/delivery.md#lanes). */
  slowPlaces: number
  slowWebhooks: readonly WebhookId[]
  /** POSTs in flight for one webhook at most, over all processes. */
  perWebhook: number
}

/**
 * Claims due dispatches until `leaseUntil`, in the transaction `db`. Fair: the webhook with the fewest POSTs in flight
 * comes first, so that a long backlog of one delays no other (docs/contract/delivery.md#lanes). Within a webhook the longest due comes first.
 *
 * The attempt is counted here, before the POST: whatever dies afterwards, no dispatch is ever posted more than five times
 * by the schedule. `waiting` finds the webhooks that have open rows by jumping along the index, so its cost follows their
 * number and not the length of their backlogs. `held` passes over rows that another transaction is changing (a webhook with
 * a long backlog is being deleted, a row is being replayed): all claims would wait for it, and it might wait for them.
 */
export async function claimDispatches(db: Database, request: ClaimRequest): Promise<ClaimedDispatch[]> {
  const { workerId, now, leaseUntil, fastPlaces, slowPlaces, slowWebhooks, perWebhook } = request
  await sql`select pg_advisory_xact_lock(${CLAIM_LOCK})`.execute(db)
  const { rows } = await sql<ClaimedColumns>`
    with recursive ${WAITING_WEBHOOKS},
    due as (
      select d.document_id, d.next_attempt_at, w.document_id = any(${slowWebhooks}::uuid[]) as is_slow,
        busy.leased + row_number() over (partition by w.document_id order by d.next_attempt_at, d.document_id) as turn
      from waiting
      join webhook w on w.document_id = waiting.webhook and w.deleted_at is null and w.is_actived
      cross join lateral (
        select count(*)::int as leased from webhook_dispatch l
        where l.webhook = w.document_id and l.lease_until is not null
      ) busy
      cross join lateral (
        select d.document_id, d.next_attempt_at from webhook_dispatch d
        where d.webhook = w.document_id and d.status in ('pending', 'retrying')
          and d.next_attempt_at <= ${now} and d.lease_until is null
        order by d.next_attempt_at, d.document_id
        limit greatest(${perWebhook}::int - busy.leased, 0)
      ) d
      union all
      select d.document_id, d.next_attempt_at, false, 1
      from webhook_dispatch d
      join webhook w on w.document_id = d.webhook and w.deleted_at is null and not w.is_actived
      where d.is_test and d.status in ('pending', 'retrying') and d.next_attempt_at <= ${now} and d.lease_until is null
    ),
    placed as (
      select document_id, is_slow,
        row_number() over (partition by is_slow order by turn, next_attempt_at, document_id) as place
      from due
    ),
    chosen as (
      select document_id from placed
      where place <= case when is_slow then ${slowPlaces}::int else ${fastPlaces}::int end
    ),
    held as (
      select d.document_id from webhook_dispatch d
      where d.document_id in (select document_id from chosen)
      for update skip locked
    )
    update webhook_dispatch d
    set lease_owner = ${workerId}, lease_until = ${leaseUntil}, fence = d.fence + 1, attempts = d.attempts + 1,
      last_attempt_at = ${now}, updated_at = ${now}
    from held h, webhook w, event_occurrence e
    where d.document_id = h.document_id and w.document_id = d.webhook and e.document_id = d.event_id
      and d.status in ('pending', 'retrying') and d.lease_until is null
    returning d.document_id, d.fence, d.attempts, d.attempt_trigger, d.is_test, d.created_at, d.webhook,
      w.url as webhook_url, w.secret_encrypted, d.event_id, d.event, e.created_at as event_created_at, e.account,
      e.resource, e.action, e.resource_id, e.url, e.trace_context`.execute(db)
  return rows.map(toClaimedDispatch)
}

function toClaimedDispatch(row: ClaimedColumns): ClaimedDispatch {
  return {
    id: row.document_id,
    fence: row.fence,
    attempt: row.attempts,
    trigger: row.attempt_trigger,
    isTest: row.is_test,
    createdAt: row.created_at,
    webhook: { id: row.webhook, url: row.webhook_url, secretEncrypted: row.secret_encrypted },
    event: {
      id: row.event_id,
      type: row.event,
      createdAt: row.event_created_at,
      account: row.account,
      resource: row.resource,
      action: row.action,
      resourceId: row.resource_id,
      url: row.url,
      trace: row.trace_context,
    },
  }
}

/** Gives back claims that were not posted: the attempt was not made, so it is not counted. */
export async function releaseClaims(
  db: Database,
  claims: readonly Pick<ClaimedDispatch, 'id' | 'fence'>[],
  now: Date,
): Promise<void> {
  if (claims.length === 0) return
  await sql`
    update webhook_dispatch d
    set lease_owner = null, lease_until = null, attempts = d.attempts - 1, updated_at = ${now},
      last_attempt_at = (select max(a.started_at) from webhook_attempt a where a.dispatch = d.document_id)
    from unnest(${claims.map((one) => one.id)}::uuid[], ${claims.map((one) => one.fence)}::int[]) as x (id, fence)
    where d.document_id = x.id and d.fence = x.fence and d.lease_until is not null`.execute(db)
}

/** A claim whose process was lost: nothing came back before its lease ran out. */
export interface ExpiredLease {
  id: DispatchId
  fence: number
  attempt: number
  trigger: AttemptTrigger
  isTest: boolean
  webhook: WebhookId
  event: string
  workerId: string
  startedAt: Date
}

/**
 * Finds up to `limit` claims whose lease ran out. They are not locked: whoever records first ends the claim, and what the
 * others record of it is void. A lock here, before those of the webhooks, would make a purge and a recovery wait for each other.
 */
export async function findLostClaims(db: Database, now: Date, limit: number): Promise<ExpiredLease[]> {
  const rows = await db
    .selectFrom('webhook_dispatch')
    .selectAll()
    .where('lease_until', '<=', now)
    .orderBy('lease_until')
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    id: row.document_id as DispatchId,
    fence: row.fence,
    attempt: row.attempts,
    trigger: row.attempt_trigger as AttemptTrigger,
    isTest: row.is_test,
    webhook: row.webhook as WebhookId,
    event: row.event,
    workerId: row.lease_owner ?? 'unknown',
    startedAt: row.last_attempt_at ?? row.created_at,
  }))
}

/** When the next dispatch that nobody holds is due; null when none waits. Looks at active webhooks and at tests. */
export async function findNextDueAt(db: Database): Promise<Date | null> {
  const { rows } = await sql<{ due_at: Date | null }>`
    with recursive ${WAITING_WEBHOOKS},
    due (due_at) as (
      select d.next_attempt_at
      from waiting
      join webhook w on w.document_id = waiting.webhook and w.deleted_at is null and w.is_actived
      cross join lateral (
        select d.next_attempt_at from webhook_dispatch d
        where d.webhook = w.document_id and d.status in ('pending', 'retrying') and d.lease_until is null
        order by d.next_attempt_at limit 1
      ) d
      union all
      (select d.next_attempt_at
      from webhook_dispatch d
      join webhook w on w.document_id = d.webhook and w.deleted_at is null and not w.is_actived
      where d.is_test and d.status in ('pending', 'retrying') and d.lease_until is null
      order by d.next_attempt_at limit 1)
    )
    select min(due_at) as due_at from due`.execute(db)
  return rows[0]?.due_at ?? null
}

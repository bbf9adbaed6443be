import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { AccountId, DispatchId, EventId, WebhookId } from '../../base/id.ts'
import type { LoggedAttempt } from '../../delivery/post/attempt.schema.ts'
import { buildCondition, type ListFilter, type ListOperator } from '../../http/listing/filter.ts'
import type { Listing } from '../../http/listing/listing.ts'
import { type BuildParts, buildPart, type ListPart, type OwnAccount } from '../../http/listing/page.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { columnsOf } from '../../http/shape/wire-row.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, rowStatement } from '../../postgres/statement/statement.ts'
import { cameInto, countChanges, findShard } from '../delivery/delivery-count.store.ts'
import type { AttemptTrigger, DispatchStatus } from '../delivery/outcome.ts'
import { findKeptUntil, queueWebhooks } from '../delivery/queue-head.ts'
import { isOfOwnWebhook } from '../reach/account-reach.store.ts'
import { DispatchRow } from './dispatch.schema.ts'

/** The columns that both tables of the ledger have. */
export const ledger = defineRecord(
  'webhook_dispatch',
  [
    ...columnsOf(DispatchRow).filter(
      (column) => column !== 'next_attempt_at' && column !== 'waiting_reason' && column !== 'is_replay',
    ),
    'attempt_trigger',
  ],
  { attempt_trigger: 'trigger' },
).typed<{
  id: DispatchId
  webhook: WebhookId
  eventId: EventId
  account: AccountId | null
  status: DispatchStatus
  trigger: AttemptTrigger | null
}>()

/** The columns of open rows: the due time, and the worker that is posting them, null without one. */
const open = defineRecord('webhook_dispatch', ['next_attempt_at', 'lease_owner'])

/** Whether the open row `d` is due and waits for the throttle of its webhook; that of the queue lets the next one start. */
const isThrottled = (d: string) => `coalesce(${d}.next_attempt_at <= (
      select q.free_at from webhook_queue q where q.webhook = ${d}.webhook), false)`

/** A stored row of the ledger, the view `webhook_dispatch`. */
export type StoredDispatch = RecordOf<typeof ledger> & RecordOf<typeof open> & { isThrottled: boolean }

/** A row of the ledger (docs/contract/delivery.md#ledger-row). */
export type DispatchRecord = StoredDispatch & { trigger: AttemptTrigger }

/** The members of the ledger row `d`, as SQL. */
export const OF_DISPATCH = `${ledger.members('d')}, ${open.members('d')}, ${isThrottled('d')} as "isThrottled"`

/** Of an ended row: a null time of delivery means its end, a null trigger the schedule. */
export function toDispatchRecord(row: StoredDispatch): DispatchRecord {
  const deliveredAt = row.deliveredAt ?? (row.status === 'success' ? row.updatedAt : null)
  return { ...row, deliveredAt, trigger: row.trigger ?? 'schedule' }
}

export interface NewDispatch {
  id: DispatchId
  webhook: WebhookId
  eventId: EventId
  event: string
  account: AccountId | null
  isTest: boolean
  trigger: AttemptTrigger
  /** Whether its webhook pulls. Default: false. */
  isPulled?: boolean
}

const insert = closingStatement<NewDispatch & { keptUntil: Date | null; now: Date; shard: number }>(`
  opened as (
    insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, is_test, attempt_trigger,
      status, attempts, next_attempt_at, kept_until, created_at, updated_at)
    values ($id, $webhook, $eventId, $event, $account, $isTest, $trigger, 'pending', 0, $now, $keptUntil, $now, $now)
    returning webhook, created_at, kept_until
  ), queued as (${queueWebhooks('opened where kept_until is null', { at: '$now', wakes: true })}),
  counted as (${countChanges([cameInto('opened', `'pending'`)], '$shard')})`)

/** Writes a ledger row, `pending` and due at once, with the last statement of the transaction. */
export async function insertDispatch(
  db: Database,
  dispatch: NewDispatch,
  { workerId, now }: { workerId: string; now: Date },
): Promise<void> {
  const keptUntil = dispatch.isPulled ? findKeptUntil(now) : null
  await insert(db, { ...dispatch, keptUntil, now, shard: findShard(workerId) })
}

/** Final statuses other than success: a small part of the ledger, with an index for each. */
const RARE_ENDS = ['exhausted', 'failed', 'cancelled'] as const satisfies readonly DispatchStatus[]

const OPEN_STATUSES = ['pending', 'retrying'] as const satisfies readonly DispatchStatus[]

const NAMING: readonly ListOperator[] = ['eq', 'in', 'ne', 'nin']

const isOfStatuses = ({ field, operator }: ListFilter) => field === 'status' && NAMING.includes(operator)

function mayMatch(status: DispatchStatus, filters: readonly ListFilter[]): boolean {
  if (filters.some(({ field }) => field === 'waiting_reason') && !OPEN_STATUSES.some((open) => open === status))
    return false
  return filters
    .filter(isOfStatuses)
    .every(({ operator, values }) => values.includes(status) === (operator === 'eq' || operator === 'in'))
}

/** A part whose query names its status: a filter on it would make PostgreSQL expect fewer rows and sort all. */
function leaveOutStatuses<Found>(part: ListPart<Found>): ListPart<Found> {
  const rest = (listing: Listing) => ({
    ...listing,
    filters: listing.filters.filter((filter) => !isOfStatuses(filter)),
  })
  return {
    read: (db, listing, fields) => part.read(db, rest(listing), fields),
    page: (listing, fields) => part.page(rest(listing), fields),
    counted: (listing, fields) => part.counted(rest(listing), fields),
  }
}

/** Maximum number of the newest events of a resource that are read (docs/contract/delivery.md#ledger-endpoints). */
const RESOURCE_EVENTS = 1_000

/**
 * The condition of a filter by `resource_id`. The ledger does not store the resource, which would cost every row: the
 * events have it, with an index by account. Resources of several accounts may have the same id, so those of `own` are
 * read separately.
 */
export function isOfResource(filter: ListFilter, own: OwnAccount | undefined): RawBuilder<SqlBool> {
  const isOfId = buildCondition(filter, sql.ref('o.resource_id'), 'text')
  const isOf = own ? sql<SqlBool>`${isOfId} and o.account = ${own}` : isOfId
  return sql<SqlBool>`event_id = any(array(
    select o.document_id from event_occurrence o where ${isOf} order by o.created_at desc limit ${sql.lit(RESOURCE_EVENTS)}))`
}

/** The condition of `is_replay`, with a literal for the partial indexes. A row without a trigger is of the schedule. */
export function isReplay({ values }: ListFilter): RawBuilder<SqlBool> {
  const isTrue = sql<SqlBool>`attempt_trigger = 'replay'`
  if (!values.includes(false)) return isTrue
  return values.includes(true) ? sql<SqlBool>`true` : sql<SqlBool>`attempt_trigger is distinct from 'replay'`
}

/** Whether the row of the list of open ones waits for the throttle of its webhook: those of webhooks that wait for theirs. */
const WAITS = sql<SqlBool>`webhook_dispatch_open.webhook = any(array(
  select q.webhook from webhook_queue q where q.free_at is not null)) and ${sql.raw(isThrottled('webhook_dispatch_open'))}`

/** The condition of a filter by `waiting_reason`, of the open rows alone: `mayMatch` leaves out the others. */
export function hasWaitingReason({ values }: ListFilter): RawBuilder<SqlBool> {
  return values.includes('throttled') ? WAITS : sql<SqlBool>`false`
}

/**
 * The ledger as a list by these filters, of the accounts of `scope`. Each table is read separately in the order of the
 * list: for both together PostgreSQL before 18 may sort all. If the filters exclude successes, each other status is
 * read separately too, as a literal in the statement: the index in the order of the list is for one status.
 */
export function listDispatches(
  db: Database,
  filters: readonly ListFilter[],
  scope: PermissionScope,
): DispatchList<StoredDispatch> {
  const isListed = (status: DispatchStatus) => mayMatch(status, filters)
  return {
    scope,
    parts: (own) => {
      const all = selectRecord(db.selectFrom('webhook_dispatch_ended'), ledger).select([
        sql<Date | null>`null::timestamptz`.as('nextAttemptAt'),
        sql<string | null>`null::text`.as('leaseOwner'),
        sql<boolean>`false`.as('isThrottled'),
      ])
      const allOpen = selectRecord(selectRecord(db.selectFrom('webhook_dispatch_open'), ledger), open).select(
        sql<boolean>`${sql.raw(isThrottled('webhook_dispatch_open'))}`.as('isThrottled'),
      )
      const isOwn = own !== undefined && scope !== 'all'
      const ended = isOwn ? all.where('account', '=', own).where(isOfOwnWebhook('webhook_dispatch_ended', scope)) : all
      const opened = isOwn
        ? allOpen.where('account', '=', own).where(isOfOwnWebhook('webhook_dispatch_open', scope))
        : allOpen
      const source = isOwn ? { own } : {}
      const ends = isListed('success')
        ? [buildPart(ended, source)]
        : RARE_ENDS.filter(isListed).map((status) =>
            leaveOutStatuses(buildPart(ended.where('status', '=', sql.lit(status)), source)),
          )
      return ends.length > 0 && !OPEN_STATUSES.some(isListed) ? ends : [...ends, buildPart(opened, source)]
    },
  }
}

interface DispatchList<Found> {
  scope: PermissionScope
  parts: BuildParts<Found>
}

interface AttemptJson extends Omit<LoggedAttempt, 'startedAt'> {
  startedAt: string
}

const selectWithAttempts = rowStatement<StoredDispatch & { attemptsLog: AttemptJson[] }, { id: string }>(`
  select ${OF_DISPATCH},
    array(select json_build_object('attempt', a.attempt, 'trigger', a.attempt_trigger, 'worker', a.worker,
        'startedAt', a.started_at, 'durationMs', a.duration_ms, 'statusCode', a.status_code, 'errorClass', a.error_class,
        'responseExcerpt', a.response_excerpt, 'responseHeaders', a.response_headers, 'timings', a.timings)
      from webhook_attempt_log a where a.dispatch = d.document_id order by a.attempt) as "attemptsLog"
  from webhook_dispatch d where d.document_id = $id`)

/** The ledger row with this id and its attempts, first attempt first, both from one snapshot. */
export async function findDispatchWithAttempts(
  db: Database,
  id: string,
): Promise<{ dispatch: DispatchRecord; attempts: LoggedAttempt[] } | undefined> {
  const row = await selectWithAttempts(db, { id })
  if (!row) return undefined
  const { attemptsLog, ...stored } = row
  const attempts = attemptsLog.map((item) => ({ ...item, startedAt: new Date(item.startedAt) }))
  return { dispatch: toDispatchRecord(stored), attempts }
}

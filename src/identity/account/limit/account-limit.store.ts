import type { AccountId, UserId } from '../../../base/id.ts'
import { countBehindLock } from '../../../postgres/statement/counted-limit.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { closingStatement, rowStatement, statement } from '../../../postgres/statement/statement.ts'

/** The limits of one account, by their names on the wire (docs/contract/delivery.md#limits-of-an-account). */
export interface AccountLimits {
  /** Webhooks that are not deleted. */
  webhooks: number
  /** Their subscriptions, except to `webhook.test`. */
  subscriptions: number
  /** Events published in a minute. */
  published_per_minute: number
  /** Dispatches replayed and tests sent in a minute. */
  replays_per_minute: number
  /** Days for which its events, deliveries and attempts are kept (docs/contract/delivery.md#retention). */
  ledger_retention_days: number
}

/** The name of a limit. */
export type LimitName = keyof AccountLimits

/** Owner of the new rows: an account, or that of a webhook. */
export type RoomOwner = { account: string } | { webhook: string }

/** The limits of one account that differ from the defaults; null for the default. */
export type LimitOverrides = Record<LimitName, number | null>

/** Counted rows of an account. */
export interface AccountUse {
  webhooks: number
  subscriptions: number
}

/** An account with its own limits and its use. */
export interface AccountWithUse {
  account: AccountId
  own: LimitOverrides
  use: AccountUse
  /** Creation of the account. */
  createdAt: Date
  /** Time of the last change of its own limits; without any, its creation. */
  updatedAt: Date
}

/** The function reads behind the lock of the account, where there is one. */
const readUse = (account: string) => `
  select a.document_id as account, json_build_object('webhooks', u.webhooks, 'subscriptions', u.subscriptions,
      'published_per_minute', u.published_per_minute, 'replays_per_minute', u.replays_per_minute,
      'ledger_retention_days', u.ledger_retention_days) as own,
    json_build_object('webhooks', u.used_webhooks, 'subscriptions', u.used_subscriptions) as use,
    a.created_at as "createdAt", coalesce(u.set_at, a.created_at) as "updatedAt"
  from ${account} a cross join lateral account_use(a.document_id) u`

const LIVING = 'select document_id, created_at from account where deleted_at is null and document_id'
const OWNER =
  'coalesce($account::uuid, (select w.account from webhook w where w.document_id = $webhook and not w.is_global))'

/** The existing account with this id, its own limits and its use. */
export const findAccountUse = rowStatement<AccountWithUse, { id: string }>(readUse(`(${LIVING} = $id)`))

const countUse = countBehindLock<AccountWithUse, { account: string | null; webhook: string | null }>({
  counts: 'webhooks and subscriptions of an account',
  lock: 'account',
  rows: `${LIVING} = ${OWNER}`,
  read: readUse('locked'),
})

/**
 * Reads it with the account locked until the transaction ends, which serializes additions of limited callers. The
 * account is locked before its webhooks (`LOCK_ORDER`).
 */
export async function lockAccountUse(db: Database, owner: RoomOwner): Promise<AccountWithUse | undefined> {
  const [row] = await countUse(db, { account: null, webhook: null, ...owner })
  return row
}

const NONE: LimitOverrides = {
  webhooks: null,
  subscriptions: null,
  published_per_minute: null,
  replays_per_minute: null,
  ledger_retention_days: null,
}

const selectOwn = statement<LimitOverrides, { account: AccountId }>(`
  select webhooks, subscriptions, published_per_minute, replays_per_minute, ledger_retention_days from account_limit
  where account = $account`)

/** The own limits of an account. */
export async function findLimitOverrides(db: Database, account: AccountId): Promise<LimitOverrides> {
  const [row] = await selectOwn(db, { account })
  return row ?? NONE
}

/** Replaces the own limits of a locked account, with the last statement of the transaction. */
export const writeLimitOverrides = closingStatement<LimitOverrides & { account: AccountId; by: UserId; now: Date }>(
  `written_limits as (
    insert into account_limit (account, webhooks, subscriptions, published_per_minute, replays_per_minute,
      ledger_retention_days, updated_by, created_at, updated_at)
    values ($account, $webhooks, $subscriptions, $published_per_minute, $replays_per_minute, $ledger_retention_days, $by,
      $now, $now)
    on conflict (account) do update set webhooks = $webhooks, subscriptions = $subscriptions,
      published_per_minute = $published_per_minute, replays_per_minute = $replays_per_minute,
      ledger_retention_days = $ledger_retention_days, updated_by = $by, updated_at = $now)`,
  ({ account }) => `l:${account}`,
)

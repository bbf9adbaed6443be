import type { AccountId, UserId } from '../../../base/id.ts'
import { countBehindLock } from '../../../postgres/statement/counted-limit.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { closingStatement, statement } from '../../../postgres/statement/statement.ts'
import type { LimitName, RoomOwner } from './account-limit.ts'

/** The limits of one account that differ from the defaults; null for the default. */
export type LimitOverrides = Record<LimitName, number | null>

/** What an account has of what is counted. */
export interface AccountUse {
  webhooks: number
  subscriptions: number
}

/** An account with its own limits and what it has. */
export interface AccountWithUse {
  account: AccountId
  own: LimitOverrides
  use: AccountUse
  /** When the account was created. */
  createdAt: Date
  /** When its own limits were last set; without any, when it was created. */
  updatedAt: Date
}

const OWN = 'l.webhooks, l.subscriptions, l.published_per_minute, l.replays_per_minute'

interface UseColumns extends LimitOverrides {
  account: string
  used_webhooks: number
  used_subscriptions: number
  created_at: Date
  updated_at: Date
}

/** The function reads behind the lock of the account, where there is one. */
const readUse = (account: string) => `
  select a.document_id as account, u.used_webhooks, u.used_subscriptions, u.webhooks, u.subscriptions,
    u.published_per_minute, u.replays_per_minute, a.created_at, coalesce(u.set_at, a.created_at) as updated_at
  from ${account} a cross join lateral account_use(a.document_id) u`

const LIVING = 'select document_id, created_at from account where deleted_at is null and document_id'
const OWNER = 'coalesce($1::uuid, (select w.account from webhook w where w.document_id = $2 and not w.is_global))'

const select = statement<UseColumns>(readUse(`(${LIVING} = $1)`))
const countUse = countBehindLock<UseColumns>({
  counts: 'webhooks and subscriptions of an account',
  lock: 'account',
  rows: `${LIVING} = ${OWNER}`,
  read: readUse('locked'),
})

function toUse({
  account,
  used_webhooks,
  used_subscriptions,
  created_at,
  updated_at,
  ...own
}: UseColumns): AccountWithUse {
  return {
    account: account as AccountId,
    own: {
      webhooks: own.webhooks,
      subscriptions: own.subscriptions,
      published_per_minute: own.published_per_minute,
      replays_per_minute: own.replays_per_minute,
    },
    use: { webhooks: used_webhooks, subscriptions: used_subscriptions },
    createdAt: created_at,
    updatedAt: updated_at,
  }
}

/** The living account with this id, its own limits and what it has. */
export async function findAccountUse(db: Database, id: string): Promise<AccountWithUse | undefined> {
  const [row] = await select(db, [id])
  return row && toUse(row)
}

/**
 * The same, with the account locked until the transaction ends: additions of callers with limits follow each other. The
 * account comes before its webhooks, as everywhere.
 */
export async function lockAccountUse(db: Database, owner: RoomOwner): Promise<AccountWithUse | undefined> {
  const values = 'account' in owner ? [owner.account, null] : [null, owner.webhook]
  const [row] = await countUse(db, values)
  return row && toUse(row)
}

const NONE: LimitOverrides = {
  webhooks: null,
  subscriptions: null,
  published_per_minute: null,
  replays_per_minute: null,
}

const selectOwn = statement<LimitOverrides>(`select ${OWN} from account_limit l where l.account = $1`)

/** The own limits of an account. */
export async function findLimitOverrides(db: Database, account: AccountId): Promise<LimitOverrides> {
  const [row] = await selectOwn(db, [account])
  return row ?? NONE
}

const write = closingStatement(`
  written_limits as (
    insert into account_limit (account, webhooks, subscriptions, published_per_minute, replays_per_minute, updated_by,
      created_at, updated_at)
    values ($1, $2, $3, $4, $5, $6, $7, $7)
    on conflict (account) do update set webhooks = $2, subscriptions = $3, published_per_minute = $4,
      replays_per_minute = $5, updated_by = $6, updated_at = $7)`)

/** Replaces the own limits of a locked account, with the last statement of the transaction. */
export async function writeLimitOverrides(
  db: Database,
  { account, own, by, now }: { account: AccountId; own: LimitOverrides; by: UserId; now: Date },
): Promise<void> {
  const values = [own.webhooks, own.subscriptions, own.published_per_minute, own.replays_per_minute]
  await write(db, [account, ...values, by, now], { notes: `l:${account}` })
}

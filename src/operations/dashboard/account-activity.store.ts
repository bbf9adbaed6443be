import type { AccountId } from '../../base/id.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { findStart } from './series.ts'

/** Members and webhooks of an account that are counted: beyond them the answer does not grow, and neither does its cost. */
export const COUNT_LIMIT = 1_000

/** Rows of an account, and its deliveries of the last 24 hours. */
export interface AccountActivity {
  account: AccountId
  /** Up to `COUNT_LIMIT`, without deleted users. */
  members: number
  /** Up to `COUNT_LIMIT`, without deleted ones. */
  webhooks: number
  success: number
  exhausted: number
  failed: number
}

/** Each account is looked up by its key, and so is what it holds: `offset 0` keeps it so. */
const selectActivity = statement<
  AccountActivity,
  { ids: readonly string[]; accounts: readonly AccountId[] | null; since: Date }
>(`
  select a.document_id as account, m.members, w.webhooks, o.success, o.exhausted, o.failed
  from (select id, min(place) as place from unnest($ids::uuid[]) with ordinality as x (id, place) group by id) x
  cross join lateral (
    select document_id from account
    where document_id = x.id and deleted_at is null
      and ($accounts::uuid[] is null or document_id = any($accounts::uuid[])) offset 0
  ) a
  cross join lateral (
    select count(*)::int as members from (
      select from (select "user" from account_member where account = a.document_id offset 0) member
      cross join lateral (
        select from "user" u where u.document_id = member."user" and u.deleted_at is null offset 0
      ) living
      limit ${COUNT_LIMIT}
    ) counted
  ) m
  cross join lateral (
    select count(*)::int as webhooks from (
      select from webhook where account = a.document_id and not is_global and deleted_at is null limit ${COUNT_LIMIT}
    ) counted
  ) w
  cross join lateral (
    select coalesce(sum(count) filter (where measure = 'success'), 0)::float8 as success,
      coalesce(sum(count) filter (where measure = 'exhausted'), 0)::float8 as exhausted,
      coalesce(sum(count) filter (where measure = 'failed'), 0)::float8 as failed
    from (
      select measure, count from webhook_outcome
      where scope = a.document_id and width = 'hour' and at >= $since
        and measure in ('success', 'exhausted', 'failed') offset 0
    ) o
  ) o
  order by x.place`)

/** Rows and deliveries of these accounts. Omits deleted ones and those outside `scope`. */
export function readAccountActivity(
  db: Database,
  { accounts: ids, now, scope }: { accounts: readonly string[]; now: Date; scope: PermissionScope },
): Promise<AccountActivity[]> {
  return selectActivity(db, { ids, accounts: scope === 'all' ? null : scope, since: findStart('24h', now) })
}

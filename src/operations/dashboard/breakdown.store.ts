import type { AccountId } from '../../base/id.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { DELIVERED, EVERYTHING } from '../../webhook/activity/outcome-keys.ts'

/** Attempts of one answer or event type; `failed` of them did not deliver. */
export interface Share {
  /** `answer:http_2xx`, `answer:<failure class>`, or `event:<event type>`. */
  measure: string
  attempts: number
  failed: number
}

/** The sums of a webhook are read by its key, all of a month: `offset 0` keeps it so. */
const selectOfWebhook = statement<
  { shares: Share[] },
  { webhook: string; accounts: readonly AccountId[] | null; start: Date }
>(`
  select b.shares
  from webhook w
  cross join lateral (
    with event as materialized (
      select o.event, sum(o.attempts) as attempts, sum(o.failed) as failed
      from (
        (select event, hour as at, success + retrying + failed as attempts, retrying + failed as failed
          from webhook_outcome_hour h where h.webhook = w.document_id offset 0)
        union all
        (select event, day, attempts, failed from webhook_outcome_day d where d.webhook = w.document_id offset 0)
      ) o
      where o.at >= $start group by 1
    )
    select coalesce(json_agg(s), '[]') as shares
    from (
      select 'event:' || event as measure, attempts, failed from event
      union all
      select 'answer:${DELIVERED}', sum(attempts - failed), 0 from event having sum(attempts - failed) > 0
      union all
      (select b.measure, sum(b.attempts), sum(b.failed)
        from (select * from webhook_breakdown o where o.subject = w.document_id offset 0) b
        where b.at >= $start group by 1)
    ) s
  ) b
  where w.document_id = $webhook and w.deleted_at is null
    and ($accounts::uuid[] is null or (not w.is_global and w.account = any($accounts::uuid[])))`)

/** The attempts of a webhook since `start`, or undefined when it is deleted or out of `scope`. */
export async function findBreakdown(
  db: Database,
  { webhook, scope, start }: { webhook: string; scope: PermissionScope; start: Date },
): Promise<Share[] | undefined> {
  const [row] = await selectOfWebhook(db, { webhook, accounts: scope === 'all' ? null : scope, start })
  return row?.shares
}

/** Each subject is read by the key of its sums. */
const selectOfEventTypes = statement<Share, { subjects: readonly string[]; start: Date }>(`
  select b.measure, sum(b.attempts)::float8 as attempts, sum(b.failed)::float8 as failed
  from unnest($subjects::uuid[]) s (subject)
  cross join lateral (
    select at, measure, attempts, failed from webhook_breakdown where subject = s.subject offset 0
  ) b
  where b.at >= $start and b.measure like 'event:%'
  group by 1`)

/** The attempts since `start` by event type, of everything or of the accounts of `scope`. */
export function readEventShares(
  db: Database,
  { scope, start }: { scope: PermissionScope; start: Date },
): Promise<Share[]> {
  return selectOfEventTypes(db, { subjects: scope === 'all' ? [EVERYTHING] : scope, start })
}

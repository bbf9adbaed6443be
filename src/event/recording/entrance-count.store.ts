import { statement } from '../../postgres/statement/statement.ts'
import type { AuditOutcome } from './audit.store.ts'

export interface EntranceCount {
  action: string
  outcome: AuditOutcome
  /** The reason of a refusal without its details. */
  reason: string | null
  provider: string | null
  audience: string | null
  /** Attempts: an entry of equal refusals counts all of them. */
  count: number
}

/** A count, with its basis. */
export interface ReadCount extends EntranceCount {
  entries: number
  oldest: Date
}

/** Counts the newest `limit` entries of each action since an instant. The actions are those of `audit_log_entrance_idx`. */
export const readEntranceCounts = statement<ReadCount, { actions: readonly string[]; since: Date; limit: number }>(`
  select l.action, l.outcome, split_part(l.detail->>'reason', ':', 1) as reason, l.detail->>'provider' as provider,
    l.detail->>'audience' as audience, sum(l.count)::int as count, min(l.created_at) as oldest, count(*)::int as entries
  from unnest($actions::text[]) a (action)
  cross join lateral (
    select x.action, x.outcome, x.detail, x.count, x.created_at from audit_log x
    where x.action = a.action and (starts_with(x.action, 'login.oauth') or x.action = 'sso.exchange')
      and x.created_at >= $since
    order by x.created_at desc limit $limit
  ) l
  group by 1, 2, 3, 4, 5`)

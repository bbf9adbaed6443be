import type { Database } from '../postgres/statement/database.ts'
import { soleRowStatement, statement } from '../postgres/statement/statement.ts'

/** The facts of the component. Counts stop at `COUNT_LIMIT`. */
export interface ProvisioningFacts {
  /** Active targets. */
  targets: number
  dead_letters_24h: number
  failed_24h: number
  /** Users with a due delivery, over all targets. */
  backlog: number
  /** The longest wait of these, in seconds; 0 when none waits. */
  oldest_pending_s: number
}

/** Reads the facts for the health of provisioning. Each count stops at `$limit` and reads a partial index of these rows. */
export const selectProvisioningFacts = soleRowStatement<ProvisioningFacts, { now: Date; since: Date; limit: number }>(`
  with live as (select document_id from provisioning_target where is_actived and deleted_at is null),
  due as (
    select s.due_at from live cross join lateral (
      select due_at from provisioning_stream s where s.target = live.document_id and s.due_at <= $now
      order by due_at limit $limit
    ) s limit $limit
  ),
  ended as (
    select kind.status, (
      select count(*)::int from (
        select from provisioning_delivery d
        where d.status = kind.status and d.status in ('failed', 'dead_letter') and d.ended_at >= $since limit $limit) e
    ) as deliveries
    from (values ('failed'), ('dead_letter')) kind (status)
  )
  select
    (select deliveries from ended where status = 'dead_letter') as dead_letters_24h,
    (select deliveries from ended where status = 'failed') as failed_24h,
    (select count(*)::int from live) as targets,
    (select count(*)::int from due) as backlog,
    coalesce((
      select floor(greatest(0, extract(epoch from $now::timestamptz - min(s.due_at))))::int
      from live cross join lateral (
        select due_at from provisioning_stream s where s.target = live.document_id and s.due_at is not null
        order by due_at limit 1
      ) s where s.due_at <= $now
    ), 0) as oldest_pending_s`)

const selectTotals = statement<{ status: string; came: number }>('select status, came from provisioning_total')

/** Number of ended deliveries by status, over all time and all processes. */
export async function readEndedDeliveries(db: Database): Promise<Map<string, number>> {
  return new Map((await selectTotals(db)).map((row) => [row.status, row.came]))
}

import { soleRowStatement } from '../../postgres/statement/statement.ts'

/** Facts of the log for health, metrics and the command. */
export interface OutboxFacts {
  isOpen: boolean
  /** Events that wait, up to the limit. */
  waiting: number
  /** Time at which the oldest of them was recorded. */
  oldestAt: Date | null
  relay: string | null
  incarnation: string | null
  sequence: number | null
  appendedAt: Date | null
  republishAfter: Date | null
  republishUntil: Date | null
  loss: 'replaced' | 'behind' | null
  lossAt: Date | null
}

/** Reads the facts. Counts end at `limit`. */
export const readOutboxFacts = soleRowStatement<OutboxFacts, { limit: number }>(`
  select exists (
      select from pg_trigger where tgrelid = 'event_occurrence'::regclass and tgname = 'record_outbox') as "isOpen",
    (select count(*)::int from (select from event_outbox limit $limit) q) as waiting,
    (select (select e.created_at from event_occurrence e where e.document_id = q.event_id)
      from event_outbox q order by q.position limit 1) as "oldestAt",
    case when l.lease_until > clock_timestamp() then l.relay end as relay, l.incarnation,
    l.last_sequence::float8 as sequence, l.appended_at as "appendedAt", l.republish_after as "republishAfter",
    l.republish_until as "republishUntil", l.loss, l.loss_at as "lossAt"
  from (values (1)) one (n) left join event_log l on l.name = 'events'`)

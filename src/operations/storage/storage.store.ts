import { soleRowStatement } from '../../postgres/statement/statement.ts'

/** Size and growth of the database. */
export interface StorageFacts {
  databaseBytes: number
  /** Events with their deliveries and attempts, retained for `WEBHOOK_LEDGER_RETENTION_DAYS`. */
  ledgerBytes: number
  /** Number of stored events by their ordinals, including rolled-back ones. */
  events: number
  /** The time from the oldest event to now; 0 without one. */
  ledgerDays: number
  /** The days that `recentEvents` counts: the last seven, or all while they are fewer. */
  recentDays: number
  recentEvents: number
  /** The audit log without the entries that rows of events hold. */
  auditBytes: number
  auditDays: number
}

/** Reads the size of the database, and by an index the first and last rows of events and audit log. */
export const readStorageFacts = soleRowStatement<StorageFacts, { now: Date }>(`
  with oldest as materialized (
    select created_at, coalesce(ordinal, 0) as ordinal from event_occurrence order by created_at limit 1
  ), newest as materialized (
    select created_at, coalesce(ordinal, 0) as ordinal from event_occurrence order by created_at desc limit 1
  ), recent as materialized (
    select created_at, coalesce(ordinal, 0) as ordinal from event_occurrence
    where created_at >= $now::timestamptz - interval '7 days' order by created_at limit 1
  )
  select pg_database_size(current_database())::float8 as "databaseBytes",
    (pg_total_relation_size('event_occurrence') + pg_total_relation_size('webhook_dispatch_ended')
      + pg_total_relation_size('webhook_attempt'))::float8 as "ledgerBytes",
    coalesce((select ordinal from newest) - (select ordinal from oldest) + 1, 0)::float8 as events,
    coalesce(extract(epoch from $now - (select created_at from oldest)), 0)::float8 / 86400 as "ledgerDays",
    coalesce(extract(epoch from $now - (select created_at from recent)), 0)::float8 / 86400 as "recentDays",
    coalesce((select ordinal from newest) - (select ordinal from recent) + 1, 0)::float8 as "recentEvents",
    pg_total_relation_size('audit_log')::float8 as "auditBytes",
    coalesce(extract(epoch from $now - (select min(created_at) from audit_log)), 0)::float8 / 86400 as "auditDays"`)

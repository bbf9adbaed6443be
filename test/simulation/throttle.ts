import { sql } from 'kysely'
import type { Database } from '../../src/postgres/statement/database.ts'
import type { Simulation } from './simulation.ts'

/** Limits a second of webhooks; most have none. */
export const LIMITS = [null, null, null, null, 20, 60] as const

/**
 * Lets the database note each claim for a webhook with a limit, in the order in which they are made. Tests of inactive
 * webhooks do not count (docs/contract/webhooks.md#throttle).
 */
export async function watchClaims(db: Database): Promise<void> {
  await sql`create table seen_claim (
    number bigint generated always as identity, webhook uuid, claimed_at timestamptz, per_second integer)`.execute(db)
  await sql`create index on seen_claim (webhook, claimed_at)`.execute(db)
  await sql`create function note_claim() returns trigger language plpgsql as $$
    begin
      insert into seen_claim (webhook, claimed_at, per_second)
      select new.webhook, new.last_attempt_at, w.max_per_second from webhook w
      where w.document_id = new.webhook and w.max_per_second is not null and w.is_actived;
      return null;
    end $$`.execute(db)
  await sql`create trigger note_claim after insert or update of lease_owner on webhook_dispatch_open
    for each row when (new.lease_owner is not null) execute function note_claim()`.execute(db)
}

/** Forgets the claims so far, when the clock of the database was set back: those after it count anew. */
export async function forgetClaims(db: Database): Promise<void> {
  await sql`truncate seen_claim`.execute(db)
}

/** Whether a claim of any process was one too many in its second. */
export async function compareClaims({ db, faults }: Simulation): Promise<void> {
  const { rows } = await sql<{ webhook: string; claimed_at: Date; per_second: number; n: number }>`
    select c.webhook, c.claimed_at, c.per_second, o.n from seen_claim c
    cross join lateral (
      select count(*)::int as n from seen_claim o
      where o.webhook = c.webhook and o.number <= c.number
        and o.claimed_at > c.claimed_at - interval '1 second' and o.claimed_at < c.claimed_at + interval '1 second'
    ) o
    where o.n > c.per_second`.execute(db)
  for (const row of rows)
    faults.push(
      `webhook ${row.webhook}: ${row.n} attempts in the second of ${row.claimed_at.toISOString()}, not ${row.per_second}`,
    )
}

import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import { markLast } from '../postgres/dialect.ts'

/** The inserts that end a change; each is left out where there is nothing to write. */
export interface ClosingInserts {
  event: RawBuilder<unknown> | undefined
  audit: RawBuilder<unknown> | undefined
  answer: RawBuilder<unknown> | undefined
}

/**
 * Runs the inserts as one statement, the last of the transaction: `commit` is sent with it. Returns what the triggers of
 * this transaction noted (`note_change` in the migrations), comma-separated.
 */
export async function commitWith(tx: Database, { event, audit, answer }: ClosingInserts): Promise<string> {
  const parts = [
    event && sql`recorded_event as (${event})`,
    audit && sql`recorded_entry as (${audit})`,
    answer && sql`kept_answer as (${answer})`,
  ].filter((part) => part !== undefined)
  const inserts = parts.length > 0 ? sql`with ${sql.join(parts)}` : sql``
  const query = sql<{ notes: string }>`
    ${inserts} select coalesce(current_setting('signalbox.notes', true), '') as notes`.compile(tx)
  const { rows } = await tx.executeQuery(markLast(query))
  return rows[0]?.notes ?? ''
}

import { sql } from 'kysely'
import { buildWholeList } from '../../http/listing/page.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { StreamRow } from './stream.schema.ts'

/** The fields of the list: the longest due stream comes first. */
export const STREAM_FIELDS = {
  due_at: { type: 'timestamp', sortable: true },
  user: { type: 'uuid', column: 'user_id' },
  waiting: { type: 'integer' },
} as const

/** Last deliveries in which dead letters are counted, so that a row does not cost more as its ledger grows. */
const COUNTED = 100

/** A stream with its next delivery. */
export interface StreamRecord {
  user_id: string
  position: number
  waiting: number
  due_at: Date | null
  delivery: string | null
  attempts: number | null
  last_status_code: number | null
  last_error: string | null
  dead_letters: number
}

/**
 * The waiting streams of a target, by the index of these rows; those with an attempt in flight are left out. The
 * first open delivery and the last hundred are looked up by the key of the stream.
 */
export function listStreams(db: Database, target: string) {
  const query = db
    .selectFrom((from) =>
      from
        .selectFrom('provisioning_stream')
        // Within a target a stream has the id of its user.
        .select(['target', 'user_id', 'user_id as document_id', 'position', 'waiting', 'due_at'])
        .where('target', '=', target)
        .where('due_at', 'is not', null)
        .as('s'),
    )
    .leftJoinLateral(
      (lateral) =>
        lateral
          .selectFrom('provisioning_delivery as d')
          .select(['d.document_id', 'd.attempts', 'd.last_status_code', 'd.last_error'])
          .whereRef('d.target', '=', 's.target')
          .whereRef('d.user_id', '=', 's.user_id')
          .where('d.ended_at', 'is', null)
          .orderBy(sql`d.position + 0`)
          .limit(1)
          .as('first'),
      (join) => join.onTrue(),
    )
    .select([
      's.user_id',
      's.position',
      's.waiting',
      's.due_at',
      'first.document_id as delivery',
      'first.attempts',
      'first.last_status_code',
      'first.last_error',
      sql<number>`(
        select count(*) filter (where l.status = 'dead_letter')::int from (
          select d.status from provisioning_delivery d where d.target = s.target and d.user_id = s.user_id
          order by d.position desc limit ${sql.lit(COUNTED)}) l)`.as('dead_letters'),
    ])
  return buildWholeList(query, { table: 's' })
}

/** Maps a stream for the wire, as of `now`. */
export function toStreamRow(record: StreamRecord, now: Date): Static<typeof StreamRow> {
  const { user_id: user, due_at: dueAt, attempts, ...rest } = record
  const due = dueAt ?? now
  const lag = Math.max(0, Math.floor((now.getTime() - due.getTime()) / 1_000))
  return { user, ...rest, due_at: due.toISOString(), lag_seconds: lag, attempts: attempts ?? 0 }
}

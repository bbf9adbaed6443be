import type { ConnectionId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { closingStatement, statement } from '../../../postgres/statement/statement.ts'

/** Start of the day of an instant, in UTC. Pure. */
export const startOfDay = (at: Date) => new Date(Math.floor(at.getTime() / 86_400_000) * 86_400_000)

/** How often an attempt ended in one way on one day. */
export interface CountedAttempts {
  day: Date
  /** Null for a sign-in. */
  reason: string | null
  count: number
}

/** No foreign key: an attempt may end after its connection. */
const count = closingStatement<{ connection: ConnectionId; day: Date; reason: string }>(`
  counted_attempt as (
    insert into connection_activity (connection, day, reason, count) values ($connection, $day, $reason, 1)
    on conflict (connection, day, reason) do update set count = connection_activity.count + 1)`)

/** Counts an attempt to sign in by a connection, with the last statement of the transaction. `reason` is null for a sign-in. */
export function countAttempt(
  db: Database,
  { connection, reason, now }: { connection: ConnectionId; reason: string | null; now: Date },
): Promise<void> {
  return count(db, { connection, day: startOfDay(now), reason: reason ?? '' })
}

/** Results of the attempts of a connection. */
export interface ConnectionActivity {
  lastSignInAt: Date | null
  /** The latest day first, the most frequent end first. */
  attempts: CountedAttempts[]
}

const select = statement<
  { lastSignInAt: Date | null; attempts: { day: string; reason: string | null; count: number }[] },
  { connection: ConnectionId; since: Date }
>(`
  select (select max(i.last_login_at) from connection_identity i where i.connection = $connection) as "lastSignInAt",
    (select coalesce(json_agg(json_build_object('day', a.day, 'reason', nullif(a.reason, ''), 'count', a.count)
        order by a.day desc, a.count desc, a.reason), '[]')
      from connection_activity a where a.connection = $connection and (a.day >= $since) is true) as attempts`)

/** The activity of a connection on the days from `since` on. */
export async function findActivity(
  db: Database,
  input: { connection: ConnectionId; since: Date },
): Promise<ConnectionActivity> {
  const [row] = await select(db, input)
  const { lastSignInAt = null, attempts = [] } = row ?? {}
  return { lastSignInAt, attempts: attempts.map((item) => ({ ...item, day: new Date(item.day) })) }
}

/** The refusals of all connections by reason on the days from `since` on, of `limit` rows at most. */
export const sumRefusals = statement<{ reason: string; count: number }, { since: Date; limit: number }>(`
  select a.reason, sum(a.count)::int as count
  from (select reason, count from connection_activity where day >= $since limit $limit) a
  where a.reason <> '' group by a.reason order by a.reason`)

const deleteOld = statement<{ connection: string }, { before: Date; limit: number }>(`
  delete from connection_activity where ctid = any(array(
    select ctid from connection_activity where day < $before limit $limit for update skip locked))
  returning connection`)

/** Deletes up to `limit` counts of days that began before `before`. Returns their number. */
export async function deleteOldActivity(db: Database, before: Date, limit: number): Promise<number> {
  return (await deleteOld(db, { before, limit })).length
}

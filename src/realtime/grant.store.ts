import type { AccountId, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { statement } from '../postgres/statement.ts'

/** A stored grant: a user may join a channel of an account. */
export interface StoredGrant {
  userId: UserId
  channel: string
  account: AccountId
}

// A crash of PostgreSQL may lose the grants of its last moments, and a grant must not wait for the disk. In one order, so
// that two statements do not wait for each other.
const save = statement<never>(`
  with paced as (select set_config('synchronous_commit', 'off', true))
  insert into realtime_grant as g (user_id, channel, account, granted_at)
  select x.user_id, x.channel, x.account, $1
  from paced, unnest($2::uuid[], $3::text[], $4::uuid[]) as x (user_id, channel, account)
  order by x.user_id, x.channel
  on conflict (user_id, channel) do update set account = excluded.account, granted_at = excluded.granted_at`)

/** Stores grants; none of them twice. */
export async function saveGrants(db: Database, grants: readonly StoredGrant[], now: Date): Promise<void> {
  await save(db, [
    now,
    grants.map((one) => one.userId),
    grants.map((one) => one.channel),
    grants.map((one) => one.account),
  ])
}

interface GrantColumns {
  user_id: string
  channel: string
  account: string
}

const toGrant = (row: GrantColumns): StoredGrant => ({
  userId: row.user_id as UserId,
  channel: row.channel,
  account: row.account as AccountId,
})

const readOf = statement<GrantColumns>(`
  select user_id, channel, account from realtime_grant where user_id = any($1)`)

/** The grants of these users. */
export async function readGrants(db: Database, users: readonly UserId[]): Promise<StoredGrant[]> {
  return (await readOf(db, [users])).map(toGrant)
}

const listAfter = statement<{ user_id: string }>(`
  select distinct user_id from realtime_grant
  where user_id > coalesce($1::uuid, '00000000-0000-0000-0000-000000000000') order by user_id limit $2`)

/** Users with grants, in the order of their ids. */
export async function listGrantedUsers(db: Database, after: UserId | null, limit: number): Promise<UserId[]> {
  return (await listAfter(db, [after, limit])).map((row) => row.user_id as UserId)
}

const removeOf = statement<never>('delete from realtime_grant where user_id = $1 and channel = any($2)')

/** Removes grants of a user. */
export async function removeGrants(db: Database, userId: UserId, channels: readonly string[]): Promise<void> {
  await removeOf(db, [userId, channels])
}

const deleteOld = statement<{ count: number }>(`
  with gone as (
    delete from realtime_grant where ctid = any(array(
      select ctid from realtime_grant where granted_at < $1 order by granted_at limit $2
      for update skip locked))
    returning channel
  ) select count(*)::int as count from gone`)

/** Deletes up to `limit` grants from before `before`. Returns how many there were. */
export async function deleteOldGrants(db: Database, before: Date, limit: number): Promise<number> {
  return (await deleteOld(db, [before, limit]))[0]?.count ?? 0
}

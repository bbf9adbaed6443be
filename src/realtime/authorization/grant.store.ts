import type { AccountId, UserId } from '../../base/id.ts'
import type { TokenName } from '../../identity/caller/token-life.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'

/** A stored grant: a user may join a channel of an account. */
export interface StoredGrant {
  userId: UserId
  channel: string
  account: AccountId
}

/** A session or API key with which a user was granted something at a provider outside of the service. */
export interface StoredToken {
  name: TokenName
  userId: UserId
  endsAt: Date | null
}

interface TokenColumns {
  token: string
  user_id: string
  ends_at: Date | null
}

const toToken = (row: TokenColumns): StoredToken => ({
  name: row.token as TokenName,
  userId: row.user_id as UserId,
  endsAt: row.ends_at,
})

const readNamed = statement<TokenColumns>(
  'select token, user_id, ends_at from realtime_grant_token where token = any($1)',
)
const readDue = statement<TokenColumns>(
  'select token, user_id, ends_at from realtime_grant_token where ends_at <= $1 order by ends_at limit $2',
)
const readAfter = statement<TokenColumns>(
  "select token, user_id, ends_at from realtime_grant_token where token > coalesce($1, '') order by token limit $2",
)

/** Those of these tokens that are stored. */
export async function readTokens(db: Database, names: readonly TokenName[]): Promise<StoredToken[]> {
  return (await readNamed(db, [names])).map(toToken)
}

/** Tokens that are to be looked at by a time. */
export async function readDueTokens(db: Database, by: Date, limit: number): Promise<StoredToken[]> {
  return (await readDue(db, [by, limit])).map(toToken)
}

/** Tokens in the order of their names. */
export async function listTokensAfter(db: Database, after: string | null, limit: number): Promise<StoredToken[]> {
  return (await readAfter(db, [after, limit])).map(toToken)
}

const extend = statement<never>('update realtime_grant_token set ends_at = $2 where token = $1')
const removeToken = statement<never>('delete from realtime_grant_token where token = $1')

/** Notes until when a token serves. */
export async function extendStoredToken(db: Database, { name, endsAt }: StoredToken): Promise<void> {
  await extend(db, [name, endsAt])
}

/** Removes a token. */
export async function removeStoredToken(db: Database, name: TokenName): Promise<void> {
  await removeToken(db, [name])
}

// A crash of PostgreSQL may lose the grants of its last moments, and a grant must not wait for the disk. In one order, so
// that two statements do not wait for each other.
const save = statement<never>(`
  with paced as (select set_config('synchronous_commit', 'off', true)), used as (
    insert into realtime_grant_token as g (token, user_id, ends_at, granted_at)
    select x.token, x.user_id, x.ends_at, $1
    from paced, unnest($5::text[], $6::uuid[], $7::timestamptz[]) as x (token, user_id, ends_at) order by x.token
    on conflict (token) do update set ends_at = excluded.ends_at, granted_at = excluded.granted_at
  )
  insert into realtime_grant as g (user_id, channel, account, granted_at)
  select x.user_id, x.channel, x.account, $1
  from paced, unnest($2::uuid[], $3::text[], $4::uuid[]) as x (user_id, channel, account)
  order by x.user_id, x.channel
  on conflict (user_id, channel) do update set account = excluded.account, granted_at = excluded.granted_at`)

/** Stores grants, and the tokens with which they were made; none of them twice. */
export async function saveGrants(
  db: Database,
  { grants, tokens }: { grants: readonly StoredGrant[]; tokens: readonly StoredToken[] },
  now: Date,
): Promise<void> {
  const ofGrants = [grants.map((one) => one.userId), grants.map((one) => one.channel), grants.map((one) => one.account)]
  const ofTokens = [tokens.map((one) => one.name), tokens.map((one) => one.userId), tokens.map((one) => one.endsAt)]
  await save(db, [now, ...ofGrants, ...ofTokens])
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
  ), gone_tokens as (
    delete from realtime_grant_token where ctid = any(array(
      select ctid from realtime_grant_token where granted_at < $1 order by granted_at limit $2
      for update skip locked))
    returning token
  )
  select (select count(*)::int from gone) + (select count(*)::int from gone_tokens) as count`)

/** Deletes up to `limit` grants, and as many tokens, from before `before`. Returns how many there were. */
export async function deleteOldGrants(db: Database, before: Date, limit: number): Promise<number> {
  return (await deleteOld(db, [before, limit]))[0]?.count ?? 0
}

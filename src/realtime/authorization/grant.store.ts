import { type AccountId, NIL_ID, type UserId } from '../../base/id.ts'
import type { TokenName } from '../../identity/caller/token-life.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../postgres/statement/record.ts'
import { changeStatement, columnStatement, statement } from '../../postgres/statement/statement.ts'

/** A stored grant: a user may join a channel of an account. */
const grant = defineRecord('realtime_grant', ['user_id', 'channel', 'account']).typed<{
  userId: UserId
  account: AccountId
}>()
export type StoredGrant = RecordOf<typeof grant>

/** A session or API key with grants at a provider outside the service. */
const token = defineRecord('realtime_grant_token', ['token', 'user_id', 'ends_at'], { token: 'name' }).typed<{
  name: TokenName
  userId: UserId
}>()
export type StoredToken = RecordOf<typeof token>

/** The stored ones of these tokens. */
export const readTokens = statement<StoredToken, { names: readonly TokenName[] }>(
  `select ${token.members()} from realtime_grant_token where token = any($names)`,
)

/** Tokens to check by a time. */
export const readDueTokens = statement<StoredToken, { by: Date; limit: number }>(
  `select ${token.members()} from realtime_grant_token where ends_at <= $by order by ends_at limit $limit`,
)

/** Tokens in the order of their names. */
export const listTokensAfter = statement<StoredToken, { after: string | null; limit: number }>(
  `select ${token.members()} from realtime_grant_token
  where token > coalesce($after, '') order by token limit $limit`,
)

/** Stores the expiry of a token. */
export const extendStoredToken = changeStatement<{ name: TokenName; endsAt: Date | null }>(
  'update realtime_grant_token set ends_at = $endsAt where token = $name',
)

/** Removes a token. */
export const removeStoredToken = changeStatement<{ name: TokenName }>(
  'delete from realtime_grant_token where token = $name',
)

// Without a wait for the disk: a crash of PostgreSQL may lose the last grants. Written in one order, so
// that two statements do not wait for each other.
const save = statement<
  never,
  {
    now: Date
    users: readonly UserId[]
    channels: readonly string[]
    accounts: readonly AccountId[]
    tokens: readonly TokenName[]
    tokenUsers: readonly UserId[]
    tokenEnds: readonly (Date | null)[]
  }
>(`
  with paced as (select set_config('synchronous_commit', 'off', true)), used as (
    insert into realtime_grant_token as g (token, user_id, ends_at, granted_at)
    select x.token, x.user_id, x.ends_at, $now
    from paced, unnest($tokens::text[], $tokenUsers::uuid[], $tokenEnds::timestamptz[]) as x (token, user_id, ends_at)
    order by x.token
    on conflict (token) do update set ends_at = excluded.ends_at, granted_at = excluded.granted_at
  )
  insert into realtime_grant as g (user_id, channel, account, granted_at)
  select x.user_id, x.channel, x.account, $now
  from paced, unnest($users::uuid[], $channels::text[], $accounts::uuid[]) as x (user_id, channel, account)
  order by x.user_id, x.channel
  on conflict (user_id, channel) do update set account = excluded.account, granted_at = excluded.granted_at`)

/** Stores grants, and the tokens with which they were made; none of them twice. */
export async function saveGrants(
  db: Database,
  { grants, tokens }: { grants: readonly StoredGrant[]; tokens: readonly StoredToken[] },
  now: Date,
): Promise<void> {
  await save(db, {
    now,
    users: grants.map((grant) => grant.userId),
    channels: grants.map((grant) => grant.channel),
    accounts: grants.map((grant) => grant.account),
    tokens: tokens.map((token) => token.name),
    tokenUsers: tokens.map((token) => token.userId),
    tokenEnds: tokens.map((token) => token.endsAt),
  })
}

/** The grants of these users. */
export const readGrants = statement<StoredGrant, { users: readonly UserId[] }>(`
  select ${grant.members()} from realtime_grant where user_id = any($users)`)

/** Users with grants, in the order of their ids. */
export const listGrantedUsers = columnStatement<UserId, { after: UserId | null; limit: number }>(`
  select distinct user_id from realtime_grant
  where user_id > coalesce($after::uuid, '${NIL_ID}') order by user_id limit $limit`)

/** Removes grants of a user. */
export const removeGrants = changeStatement<{ userId: UserId; channels: readonly string[] }>(
  'delete from realtime_grant where user_id = $userId and channel = any($channels)',
)

const deleteOldOnes = deletionOfOld('realtime_grant', { key: 'ctid', time: 'granted_at' })
const deleteOldTokens = deletionOfOld('realtime_grant_token', { key: 'ctid', time: 'granted_at' })

/** Deletes up to `limit` grants, and as many tokens, from before `before`. Returns their number. */
export const deleteOldGrants = async (db: Database, before: Date, limit: number): Promise<number> =>
  (await deleteOldOnes(db, before, limit)) + (await deleteOldTokens(db, before, limit))

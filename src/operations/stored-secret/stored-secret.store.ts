import { statement } from '../../postgres/statement/statement.ts'

/** The tables with permanent secrets, and their ciphertext columns. */
const LASTING = [
  ['webhook', 'secret_encrypted'],
  ['webhook', 'headers_encrypted'],
  ['webhook', 'signing_key_encrypted'],
  ['provisioning_target', 'secret_encrypted'],
  ['totp_factor', 'secret_encrypted'],
  ['connection', 'secret_encrypted'],
  ['oauth_signing_key', 'private_key'],
  ['cell', 'database_url_encrypted'],
] as const

/** A table that keeps secrets. */
export type SecretPlace = (typeof LASTING)[number][0]

/** The parts of `with` that find the key ids of a table by its index, one after the other, without reading the table. */
function findKeys([table, column]: readonly [string, string]): string {
  const key = `split_part(${column}, '.', 2)`
  const next = (after: string) =>
    `(select ${key} from ${table} where ${column} is not null ${after} order by ${key} limit 1)`
  const name = `${table}_${column}_keys`
  return `${name} (key_id) as (
    select ${next('')}
    union all
    select ${next(`and ${key} > k.key_id`)} from ${name} k where k.key_id is not null
  )`
}

/** A key id under which a table keeps secrets. `secrets` is counted only where SECRET_KEY does not list the key. */
export interface UsedKey {
  place: SecretPlace
  keyId: string
  isListed: boolean
  secrets: number
}

/** The key ids of permanent secrets. Reads a few index entries, and counts unreadable ones, up to `limit` of a column. */
export const listUsedKeys = statement<UsedKey, { keyIds: readonly string[]; limit: number }>(`
  with recursive ${LASTING.map(findKeys).join(', ')}
  ${LASTING.map(
    ([table, column]) => `
    select '${table}' as place, key_id as "keyId", key_id = any($keyIds::text[]) as "isListed",
      case when key_id = any($keyIds::text[]) then 0 else (
        select count(*)::int from (
          select from ${table} where ${column} is not null and split_part(${column}, '.', 2) = k.key_id limit $limit
        ) s) end as secrets
    from ${table}_${column}_keys k where key_id is not null`,
  ).join(' union all ')}`)

/** Expiring ciphertexts: `oauth_state` has them as members of a payload. */
const PASSING = `
  select 'mail_outbox' as place, content as sealed, expires_at from mail_outbox
    where status = 'waiting' and content is not null and expires_at > $now
  union all
  select 'login_flow', secret, expires_at from login_flow where consumed_at is null and expires_at > $now
  union all
  select 'oauth_state', sealed, expires_at from oauth_state cross join lateral (
    values (payload ->> 'deviceCode'), (payload ->> 'parJti'), (payload ->> 'sealedId'), (answer)) x (sealed)
    where sealed is not null and expires_at > $now
  union all
  select 'engine_session', token, expires_at from engine_session where expires_at > $now
  union all
  select 'oauth_engine_decision', authorize_url, decided_at + interval '1 hour' from oauth_engine_decision
    where authorize_url is not null and decided_at > $now::timestamptz - interval '1 hour'`

/** Number of secrets of a table under a key. */
export interface SecretCount {
  place: string
  keyId: string
  secrets: number
  /** Expiry of the last of them; null for permanent ones. */
  endsAt: Date | null
}

/** Counts every stored secret by table and key. Reads the whole tables: for commands. */
export const countSecrets = statement<SecretCount, { now: Date }>(`
  select place, split_part(sealed, '.', 2) as "keyId", count(*)::int as secrets, max(ends_at) as "endsAt" from (
    ${LASTING.map(
      ([table, column]) =>
        `select '${table}' as place, ${column} as sealed, null::timestamptz as ends_at from ${table} where ${column} is not null`,
    ).join(' union all ')}
    union all select place, sealed, expires_at from (${PASSING}) passing
  ) every
  group by 1, 2 order by 1, 2`)

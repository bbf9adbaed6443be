import type { Id, UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { closingStatement, statement } from '../../../postgres/statement/statement.ts'
import { HOLDINGS_COLUMNS, type HoldingsRow, toHoldings } from '../../access/delegation.store.ts'
import type { Holdings } from '../../access/delegation.ts'
import type { ProviderIdentity } from '../../engine/engine.ts'

export type IdentityId = Id<'identity'>

/** A row of the `identity` table: a user at a provider. */
export interface IdentityRecord extends ProviderIdentity {
  id: IdentityId
  userId: UserId
  lastLoginAt: Date | null
  createdAt: Date
  updatedAt: Date
}

interface IdentityColumns {
  document_id: string
  user: string
  provider: string
  subject: string
  email: string | null
  is_email_verified: boolean
  name: string | null
  avatar_url: string | null
  last_login_at: Date | null
  created_at: Date
  updated_at: Date
}

const COLUMNS = [
  'i.document_id',
  'i.user',
  'i.provider',
  'i.subject',
  'i.email',
  'i.is_email_verified',
  'i.name',
  'i.avatar_url',
  'i.last_login_at',
  'i.created_at',
  'i.updated_at',
] as const

/** The columns above of the identity `i`, as SQL. */
const OF_IDENTITY = COLUMNS.join(', ').replace('i.user', 'i."user"')

/** Maps a row of `selectIdentities`. */
export function toIdentityRecord(row: IdentityColumns): IdentityRecord {
  return {
    id: row.document_id as IdentityId,
    userId: row.user as UserId,
    provider: row.provider,
    subject: row.subject,
    email: row.email,
    isEmailVerified: row.is_email_verified,
    name: row.name,
    avatarUrl: row.avatar_url,
    lastLoginAt: row.last_login_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** The identities of a user, as the base of a list. */
export function selectIdentities(db: Database, userId: UserId) {
  return db
    .selectFrom('identity as i')
    .select([...COLUMNS])
    .where('i.user', '=', userId)
}

const lock = statement<IdentityColumns & { is_living: boolean }, { provider: string; subject: string; email: string }>(`
  select ${OF_IDENTITY}, is_living_user(i."user") as is_living from lock_identity($provider, $subject, $email) i`)

/** An identity, and whether its user exists, not deleted. */
export interface KnownIdentity {
  identity: IdentityRecord
  isLiving: boolean
}

/**
 * The identity of a person at a provider. Serializes sign-ins of the person until the transaction ends: those of the same
 * identity, and those with the same address. So two first sign-ins at once make one user.
 */
export async function lockIdentity(
  db: Database,
  { provider, subject, email }: ProviderIdentity,
): Promise<KnownIdentity | undefined> {
  const [row] = await lock(db, { provider, subject, email: email ?? '' })
  return row && { identity: toIdentityRecord(row), isLiving: row.is_living }
}

const upsert = closingStatement<{
  id: IdentityId
  userId: UserId
  provider: string
  subject: string
  email: string | null
  isEmailVerified: boolean
  name: string | null
  avatarUrl: string | null
  lastLoginAt: Date | null
  now: Date
  engineSubject: string | null
}>(`
  saved_identity as (
    insert into identity as i (document_id, "user", provider, subject, email, is_email_verified, name, avatar_url,
      last_login_at, created_at, updated_at, engine_subject)
    values ($id, $userId, $provider, $subject, $email, $isEmailVerified, $name, $avatarUrl,
      $lastLoginAt, $now, $now, $engineSubject)
    on conflict (provider, subject) do update set "user" = excluded."user", email = excluded.email,
      is_email_verified = excluded.is_email_verified, name = excluded.name, avatar_url = excluded.avatar_url,
      last_login_at = excluded.last_login_at, updated_at = excluded.updated_at,
      engine_subject = coalesce(excluded.engine_subject, i.engine_subject))`)

/**
 * Inserts the identity of a user, or updates `known` by what the provider says now, with the last statement of the
 * transaction. A name that the provider says only once is kept. The caller holds `lockIdentity` and has decided that the
 * identity is this user's.
 */
export async function saveIdentity(
  db: Database,
  known: IdentityRecord | undefined,
  row: ProviderIdentity & { id: IdentityId; userId: UserId; lastLoginAt: Date | null; now: Date },
): Promise<IdentityRecord> {
  const { now, ...rest } = row
  const saved = {
    ...rest,
    id: known?.id ?? row.id,
    name: row.name ?? known?.name ?? null,
    avatarUrl: row.avatarUrl ?? known?.avatarUrl ?? null,
    lastLoginAt: row.lastLoginAt ?? known?.lastLoginAt ?? null,
    createdAt: known?.createdAt ?? now,
    updatedAt: now,
  }
  await upsert(db, { ...saved, now, engineSubject: row.engineSubject ?? null })
  return saved
}

const lockWaysIn = statement<
  IdentityColumns & { has_password: boolean; passkeys: number },
  { userId: UserId; without: string }
>(`
  select ${OF_IDENTITY}, w.has_password, w.passkeys
  from lock_ways_in($without, $userId) w cross join lateral identities_of(w.holder) i`)

/** The ways in which a person can sign in. */
export interface WaysIn {
  hasPassword: boolean
  passkeys: number
  identities: IdentityRecord[]
}

/**
 * The identities of a user, whether it has a password, and how many passkeys it has. Locks the identity that is to go and
 * the user until the transaction ends, and reads behind the locks: two removals at once do not each count on the other, and
 * no sign-in under way brings the identity back. Without an identity, the others are false and 0.
 */
export async function lockWaysOf(db: Database, userId: UserId, without: string): Promise<WaysIn> {
  return toWaysIn(await lockWaysIn(db, { userId, without }))
}

function toWaysIn(rows: readonly (IdentityColumns & { has_password: boolean; passkeys: number })[]): WaysIn {
  const { has_password: hasPassword = false, passkeys = 0 } = rows[0] ?? {}
  return { hasPassword, passkeys, identities: rows.map(toIdentityRecord) }
}

const lockWaysInAndHoldings = statement<
  IdentityColumns & HoldingsRow & { has_password: boolean; passkeys: number },
  { userId: UserId; without: string }
>(`
  select ${OF_IDENTITY}, w.has_password, w.passkeys, ${HOLDINGS_COLUMNS}
  from lock_ways_in($without, $userId) w
  cross join lateral user_holdings(w.holder) h
  cross join lateral identities_of(w.holder) i`)

/** As `lockWaysOf`, with what the user holds. Undefined for a user without an identity. */
export async function lockWaysAndHoldings(
  db: Database,
  userId: UserId,
  without: string,
): Promise<{ ways: WaysIn; holdings: Holdings } | undefined> {
  const rows = await lockWaysInAndHoldings(db, { userId, without })
  return rows[0] && { ways: toWaysIn(rows), holdings: toHoldings(rows[0]) }
}

const selectWaysIn = statement<IdentityColumns & { has_password: boolean; passkeys: number }, { userId: UserId }>(`
  select ${OF_IDENTITY},
    (select u.password_hash is not null from "user" u where u.document_id = $userId) as has_password,
    (select count(*)::int from passkey p where p."user" = $userId) as passkeys
  from identity i where i."user" = $userId`)

/** As `lockWaysOf`, without a lock, for a page. */
export async function findWaysOf(db: Database, userId: UserId): Promise<WaysIn> {
  return toWaysIn(await selectWaysIn(db, { userId }))
}

const selectOwn = statement<IdentityColumns, { id: string; userId: UserId }>(`
  select ${OF_IDENTITY} from identity i where i.document_id = $id and i."user" = $userId`)

/** An identity of this user. */
export async function findOwnIdentity(db: Database, id: string, userId: UserId): Promise<IdentityRecord | undefined> {
  const [row] = await selectOwn(db, { id, userId })
  return row && toIdentityRecord(row)
}

const remove = closingStatement<{ id: IdentityId }>(
  'removed_identity as (delete from identity where document_id = $id)',
)

/** Deletes an identity of a locked user, with the last statement of the transaction. */
export function deleteIdentity(db: Database, id: IdentityId): Promise<void> {
  return remove(db, { id })
}

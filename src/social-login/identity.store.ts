import type { ProviderIdentity } from '../engine/engine.ts'
import type { Id, UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { aheadStatement, statement } from '../postgres/statement.ts'

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

const lock = aheadStatement(`
  select pg_advisory_xact_lock(hashtextextended('identity ' || $1 || ' ' || $2, 0)),
    pg_advisory_xact_lock(hashtextextended('address ' || lower($3), 0))`)

/**
 * Serializes sign-ins of one person until the transaction ends: those of the same identity, and those with the same
 * address. So two first sign-ins at once make one user.
 */
export function lockPerson(db: Database, { provider, subject, email }: ProviderIdentity): Promise<void> {
  return lock(db, [provider, subject, email ?? ''])
}

const selectKnown = statement<IdentityColumns & { is_living: boolean }>(`
  select ${OF_IDENTITY}, u.deleted_at is null as is_living
  from identity i join "user" u on u.document_id = i."user" where i.provider = $1 and i.subject = $2`)

/** The identity of a person at a provider, and whether its user exists, not deleted. */
export async function findIdentity(
  db: Database,
  provider: string,
  subject: string,
): Promise<{ identity: IdentityRecord; isLiving: boolean } | undefined> {
  const [row] = await selectKnown(db, [provider, subject])
  return row && { identity: toIdentityRecord(row), isLiving: row.is_living }
}

const upsert = statement<IdentityColumns>(`
  insert into identity as i (document_id, "user", provider, subject, email, is_email_verified, name, avatar_url,
    last_login_at, created_at, updated_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
  on conflict (provider, subject) do update set "user" = excluded."user", email = excluded.email,
    is_email_verified = excluded.is_email_verified, name = coalesce(excluded.name, i.name),
    avatar_url = excluded.avatar_url, last_login_at = coalesce(excluded.last_login_at, i.last_login_at),
    updated_at = excluded.updated_at
  returning ${OF_IDENTITY}`)

/**
 * Inserts the identity of a user, or updates it by what the provider says now. A name that the provider says only once is
 * kept. The caller holds `lockPerson` and has decided that the identity is this user's.
 */
export async function upsertIdentity(
  db: Database,
  row: ProviderIdentity & { id: IdentityId; userId: UserId; lastLoginAt: Date | null; now: Date },
): Promise<IdentityRecord> {
  const { id, userId, provider, subject, email, isEmailVerified, name, avatarUrl, lastLoginAt, now } = row
  const values = [id, userId, provider, subject, email, isEmailVerified, name, avatarUrl, lastLoginAt, now]
  const [saved] = (await upsert(db, values)) as [IdentityColumns]
  return toIdentityRecord(saved)
}

const lockOwner = aheadStatement('select from "user" where document_id = $1 for no key update')

const selectWaysIn = statement<{ has_password: boolean; providers: string[] }>(`
  select u.password_hash is not null as has_password,
    array(select i.provider from identity i where i."user" = u.document_id and i.document_id <> $2) as providers
  from "user" u where u.document_id = $1`)

/**
 * How a user could still sign in without one of its identities. Locks the user until the transaction ends, so that two
 * removals at once do not each count on the other.
 */
export async function findOtherWaysIn(
  db: Database,
  userId: UserId,
  without: IdentityId,
): Promise<{ hasPassword: boolean; providers: string[] }> {
  await lockOwner(db, [userId])
  const [row] = await selectWaysIn(db, [userId, without])
  return { hasPassword: row?.has_password ?? false, providers: row?.providers ?? [] }
}

const selectOwn = statement<IdentityColumns>(`
  select ${OF_IDENTITY} from identity i where i.document_id = $1 and i."user" = $2`)

/** An identity of this user. */
export async function findOwnIdentity(db: Database, id: string, userId: UserId): Promise<IdentityRecord | undefined> {
  const [row] = await selectOwn(db, [id, userId])
  return row && toIdentityRecord(row)
}

const remove = statement<IdentityColumns>(`delete from identity i where i.document_id = $1 returning ${OF_IDENTITY}`)

/** Deletes an identity. Undefined when it is gone already. */
export async function deleteIdentity(db: Database, id: IdentityId): Promise<IdentityRecord | undefined> {
  const [row] = await remove(db, [id])
  return row && toIdentityRecord(row)
}

import type { Id, UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../../postgres/statement/record.ts'
import { closingStatement, rowStatement, statement } from '../../../postgres/statement/statement.ts'
import { HOLDINGS } from '../../access/delegation.store.ts'
import type { Holdings } from '../../access/delegation.ts'
import type { ProviderIdentity } from '../../engine/engine.ts'

export type IdentityId = Id<'identity'>

/** A user at a provider. */
export const identity = defineRecord(
  'identity',
  [
    'document_id',
    'user',
    'provider',
    'subject',
    'email',
    'is_email_verified',
    'name',
    'avatar_url',
    'last_login_at',
    'created_at',
    'updated_at',
  ],
  { user: 'userId' },
)
export type IdentityRecord = RecordOf<typeof identity> & ProviderIdentity

/** The identities of a user, as the base of a list. */
export function selectIdentities(db: Database, userId: UserId) {
  return selectRecord(db.selectFrom('identity as i'), identity, 'i').where('i.user', '=', userId)
}

const lock = statement<IdentityRecord & { isLiving: boolean }, { provider: string; subject: string; email: string }>(`
  select ${identity.members('i')}, is_living_user(i."user") as "isLiving" from lock_identity($provider, $subject, $email) i`)

/** An identity, and whether its user exists, not deleted. */
export interface KnownIdentity {
  identity: IdentityRecord
  isLiving: boolean
}

/**
 * The identity of a user at a provider. Serializes sign-ins of the user until the transaction ends: those of the same
 * identity, and those with the same address. So two concurrent first sign-ins create one user.
 */
export async function lockIdentity(
  db: Database,
  { provider, subject, email }: ProviderIdentity,
): Promise<KnownIdentity | undefined> {
  const [row] = await lock(db, { provider, subject, email: email ?? '' })
  if (!row) return undefined
  const { isLiving, ...known } = row
  return { identity: known, isLiving }
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
 * Inserts the identity of a user, or updates `known` from the provider's current claims, with the last statement of the
 * transaction. A name that the provider sends only once is kept. The caller holds `lockIdentity` and has decided that
 * the identity belongs to this user.
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

interface WaysBeside {
  hasPassword: boolean
  passkeys: number
}

const lockWaysIn = statement<IdentityRecord & WaysBeside, { userId: UserId; without: string }>(`
  select ${identity.members('i')}, w.has_password as "hasPassword", w.passkeys
  from lock_ways_in($without, $userId) w cross join lateral identities_of(w.holder) i`)

/** The ways in which a user can sign in. */
export interface WaysIn extends WaysBeside {
  identities: IdentityRecord[]
}

/**
 * The identities of a user, whether it has a password, and how many passkeys it has. Locks the identity to remove and
 * the user until the transaction ends, and reads behind the locks: concurrent removals do not rely on each other, and
 * no concurrent sign-in restores the identity. Without an identity, the others are false and 0.
 */
export async function lockWaysOf(db: Database, userId: UserId, without: string): Promise<WaysIn> {
  return toWaysIn(await lockWaysIn(db, { userId, without }))
}

function toWaysIn(rows: readonly (IdentityRecord & WaysBeside)[]): WaysIn {
  const { hasPassword = false, passkeys = 0 } = rows[0] ?? {}
  return { hasPassword, passkeys, identities: rows.map(({ hasPassword: _, passkeys: __, ...known }) => known) }
}

const lockWaysInAndHoldings = statement<
  IdentityRecord & WaysBeside & { holdings: Holdings },
  { userId: UserId; without: string }
>(`
  select ${identity.members('i')}, w.has_password as "hasPassword", w.passkeys, ${HOLDINGS}
  from lock_ways_in($without, $userId) w
  cross join lateral user_holdings(w.holder) h
  cross join lateral identities_of(w.holder) i`)

/** As `lockWaysOf`, with the user's permissions. Undefined for a user without an identity. */
export async function lockWaysAndHoldings(
  db: Database,
  userId: UserId,
  without: string,
): Promise<{ ways: WaysIn; holdings: Holdings } | undefined> {
  const rows = await lockWaysInAndHoldings(db, { userId, without })
  const [first] = rows
  return first && { ways: toWaysIn(rows.map(({ holdings: _, ...row }) => row)), holdings: first.holdings }
}

const selectWaysIn = statement<IdentityRecord & WaysBeside, { userId: UserId }>(`
  select ${identity.members('i')},
    (select u.password_hash is not null from "user" u where u.document_id = $userId) as "hasPassword",
    (select count(*)::int from passkey p where p."user" = $userId) as passkeys
  from identity i where i."user" = $userId`)

/** As `lockWaysOf`, without a lock, for a page. */
export async function findWaysOf(db: Database, userId: UserId): Promise<WaysIn> {
  return toWaysIn(await selectWaysIn(db, { userId }))
}

/** An identity of this user. */
export const findOwnIdentity = rowStatement<IdentityRecord, { id: string; userId: UserId }>(`
  select ${identity.members('i')} from identity i where i.document_id = $id and i."user" = $userId`)

/** Deletes an identity of a locked user, with the last statement of the transaction. */
export const deleteIdentity = closingStatement<{ id: IdentityId }>(
  'removed_identity as (delete from identity where document_id = $id)',
)

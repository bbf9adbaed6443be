import type { UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { aheadStatement, statement } from '../../postgres/statement/statement.ts'
import { MEMBER_ROLE } from '../access/system-roles.ts'
import { foldEmail } from '../user-record/email-key.ts'

/** An identity at a provider, by which it is unique. */
export interface IdentityKey {
  provider: string
  subject: string
}

/** Facts of the database about users to import. */
export interface KnownOfImport {
  /** Ids that a user has, deleted ones among them. */
  ids: ReadonlySet<string>
  /** Comparison keys of addresses that a user has, not deleted. */
  emails: ReadonlySet<string>
  /** `identityKeyOf` of identities that a user has. */
  identities: ReadonlySet<string>
}

/** A text that differs for any two identities. Pure. */
export const identityKeyOf = ({ provider, subject }: IdentityKey): string => JSON.stringify([provider, subject])

interface Asked {
  ids: readonly string[]
  emails: readonly string[]
  providers: readonly string[]
  subjects: readonly string[]
}

const selectKnown = statement<{ ids: string[]; emails: string[]; identities: IdentityKey[] }, Asked>(`
  select
    array(select known.id from unnest($ids::uuid[]) x (id) cross join lateral (
      select u.document_id as id from "user" u where u.document_id = x.id offset 0) known) as ids,
    array(select known.email from unnest($emails::text[]) x (email) cross join lateral (
      select u.email from "user" u
      where email_key(u.email) = email_key(x.email) and u.deleted_at is null and not u.is_email_shadowed
      offset 0) known) as emails,
    (select coalesce(json_agg(known), '[]') from unnest($providers::text[], $subjects::text[]) x (provider, subject)
      cross join lateral (
        select i.provider, i.subject from identity i where i.provider = x.provider and i.subject = x.subject offset 0
      ) known) as identities`)

/** Rows that these users already have. */
export async function findKnownOfImport(db: Database, users: readonly NewImportedUser[]): Promise<KnownOfImport> {
  const [row] = await selectKnown(db, toAsked(users))
  const { ids = [], emails = [], identities = [] } = row ?? {}
  return {
    ids: new Set(ids),
    emails: new Set(emails.map(foldEmail)),
    identities: new Set(identities.map(identityKeyOf)),
  }
}

function toAsked(users: readonly NewImportedUser[]): Asked {
  const identities = users.flatMap((user) => user.identities)
  return {
    ids: users.map(({ id }) => id),
    emails: users.map(({ email }) => email),
    providers: identities.map(({ provider }) => provider),
    subjects: identities.map(({ subject }) => subject),
  }
}

const lock = aheadStatement<Omit<Asked, 'ids'>>(
  'select lock_identities($providers::text[], $subjects::text[], $emails::text[])',
)

/** Serializes sign-ins by these identities and addresses, and other imports of them, until the transaction ends. */
export function lockIdentitiesOf(tx: Database, users: readonly NewImportedUser[]): Promise<void> {
  const { ids: _, ...asked } = toAsked(users)
  return lock(tx, asked)
}

/** A user to insert, with what belongs to it. Binary values are in base64. */
export interface NewImportedUser {
  id: UserId
  email: string
  emailVerifiedAt: Date | null
  name: string | null
  passwordHash: string | null
  isActived: boolean
  identities: readonly (IdentityKey & {
    id: string
    email: string | null
    isEmailVerified: boolean
    name: string | null
  })[]
  totp: { id: string; secretEncrypted: string } | null
  passkeys: readonly {
    id: string
    credentialId: string
    publicKey: string
    counter: number
    transports: readonly string[]
    name: string
    isBackupEligible: boolean
    isBackedUp: boolean
  }[]
}

/** Inserted rows. */
export interface InsertedOfImport {
  ids: ReadonlySet<string>
  credentialIds: ReadonlySet<string>
}

const insert = statement<
  { ids: string[]; credentialIds: string[] },
  { users: string; identities: string; totps: string; passkeys: string; roleName: string; now: Date }
>(`
  with new_user as (
    insert into "user" (document_id, email, email_verified_at, name, password_hash, is_actived, created_at, updated_at)
    select x.id, x.email, x."emailVerifiedAt", x.name, x."passwordHash", x."isActived", $now, $now
    from jsonb_to_recordset($users::jsonb) as x (id uuid, email text, "emailVerifiedAt" timestamptz, name text,
      "passwordHash" text, "isActived" boolean)
    on conflict do nothing returning document_id
  ), given as (
    insert into user_role ("user", role, created_at)
    select u.document_id, r.document_id, $now from new_user u, role r where r.name = $roleName
  ), new_identity as (
    insert into identity (document_id, "user", provider, subject, email, is_email_verified, name, created_at, updated_at)
    select x.id, u.document_id, x.provider, x.subject, x.email, x."isEmailVerified", x.name, $now, $now
    from jsonb_to_recordset($identities::jsonb) as x (id uuid, "userId" uuid, provider text, subject text, email text,
      "isEmailVerified" boolean, name text)
    join new_user u on u.document_id = x."userId"
  ), new_totp as (
    insert into totp_factor (document_id, "user", secret_encrypted, confirmed_at, created_at, updated_at)
    select x.id, u.document_id, x."secretEncrypted", $now, $now, $now
    from jsonb_to_recordset($totps::jsonb) as x (id uuid, "userId" uuid, "secretEncrypted" text)
    join new_user u on u.document_id = x."userId"
  ), new_passkey as (
    insert into passkey (document_id, "user", credential_id, public_key, counter, transports, name, is_backup_eligible,
      is_backed_up, created_at, updated_at)
    select x.id, u.document_id, x."credentialId", decode(x."publicKey", 'base64'), x.counter, x.transports, x.name,
      x."isBackupEligible", x."isBackedUp", $now, $now
    from jsonb_to_recordset($passkeys::jsonb) as x (id uuid, "userId" uuid, "credentialId" text, "publicKey" text,
      counter bigint, transports text[], name text, "isBackupEligible" boolean, "isBackedUp" boolean)
    join new_user u on u.document_id = x."userId"
    on conflict (credential_id) do nothing returning credential_id
  )
  select array(select document_id from new_user) as ids,
    array(select credential_id from new_passkey) as "credentialIds"`)

/** Inserts users, but for those whose address is taken by now. Their identities are free (`lockIdentitiesOf`). */
export async function insertImportedUsers(
  tx: Database,
  users: readonly NewImportedUser[],
  now: Date,
): Promise<InsertedOfImport> {
  const ofUsers = <Part extends object>(read: (user: NewImportedUser) => readonly Part[]) =>
    JSON.stringify(users.flatMap((user) => read(user).map((part) => ({ ...part, userId: user.id }))))
  const [row] = await insert(tx, {
    users: JSON.stringify(users.map(({ identities: _, totp: __, passkeys: ___, ...user }) => user)),
    identities: ofUsers(({ identities }) => identities),
    totps: ofUsers(({ totp }) => (totp ? [totp] : [])),
    passkeys: ofUsers(({ passkeys }) => passkeys),
    roleName: MEMBER_ROLE,
    now,
  })
  const { ids = [], credentialIds = [] } = row ?? {}
  return { ids: new Set(ids), credentialIds: new Set(credentialIds) }
}

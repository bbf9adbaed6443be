import type { Id, UserId } from '../../../base/id.ts'
import { countBehindLock } from '../../../postgres/statement/counted-limit.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { changeStatement, statement } from '../../../postgres/statement/statement.ts'

export type PasskeyId = Id<'passkey'>

/** A row of `passkey`. */
export interface Passkey {
  id: PasskeyId
  userId: UserId
  /** In base64url. */
  credentialId: string
  /** COSE. */
  publicKey: Buffer
  /** The signature counter of the last use; 0 for a passkey that does not count. */
  counter: number
  transports: string[]
  name: string
  /** Whether it may be copied to other devices. */
  isBackupEligible: boolean
  isBackedUp: boolean
  lastUsedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

interface PasskeyColumns {
  document_id: string
  user: string
  credential_id: string
  public_key: Buffer
  counter: string | number | bigint
  transports: string[]
  name: string
  is_backup_eligible: boolean
  is_backed_up: boolean
  last_used_at: Date | null
  created_at: Date
  updated_at: Date
}

const COLUMNS = [
  'document_id',
  'user',
  'credential_id',
  'public_key',
  'counter',
  'transports',
  'name',
  'is_backup_eligible',
  'is_backed_up',
  'last_used_at',
  'created_at',
  'updated_at',
] as const
const SELECTED = COLUMNS.map((column) => `"${column}"`).join(', ')

/** Maps a row of `passkey`. */
export function toPasskey(row: PasskeyColumns): Passkey {
  return {
    id: row.document_id as PasskeyId,
    userId: row.user as UserId,
    credentialId: row.credential_id,
    publicKey: row.public_key,
    counter: Number(row.counter),
    transports: row.transports,
    name: row.name,
    isBackupEligible: row.is_backup_eligible,
    isBackedUp: row.is_backed_up,
    lastUsedAt: row.last_used_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** The passkeys of a person, as the base of a list. */
export function selectPasskeys(db: Database, userId: UserId) {
  return db.selectFrom('passkey').select(COLUMNS).where('user', '=', userId)
}

/** All passkeys of a person, the oldest first. */
export async function listPasskeys(db: Database, userId: UserId): Promise<Passkey[]> {
  return (await selectPasskeys(db, userId).orderBy('created_at').execute()).map(toPasskey)
}

const count = countBehindLock<{ passkeys: number }, { userId: UserId }>({
  counts: 'passkeys of a person',
  lock: 'user',
  take: 'select from "user" where document_id = $userId for no key update',
  count: 'select count(*)::int as passkeys from passkey where "user" = $userId',
})

/** How many passkeys a person has: none is added or removed by another transaction until this one ends. */
export async function countPasskeys(db: Database, userId: UserId): Promise<number> {
  const [row] = await count(db, { userId })
  return row?.passkeys ?? 0
}

const select = statement<PasskeyColumns, { credentialId: string }>(
  `select ${SELECTED} from passkey where credential_id = $credentialId`,
)

/** The passkey with this credential id, of any person. */
export async function findPasskey(db: Database, credentialId: string): Promise<Passkey | undefined> {
  const [row] = await select(db, { credentialId })
  return row && toPasskey(row)
}

/** A passkey that is to be. */
type NewPasskey = Omit<Passkey, 'lastUsedAt' | 'createdAt' | 'updatedAt'> & { now: Date }

const insert = statement<PasskeyColumns, NewPasskey>(`
  insert into passkey (document_id, "user", credential_id, public_key, counter, transports, name, is_backup_eligible,
    is_backed_up, created_at, updated_at)
  values ($id, $userId, $credentialId, $publicKey, $counter, $transports, $name, $isBackupEligible,
    $isBackedUp, $now, $now)
  on conflict (credential_id) do nothing returning ${SELECTED}`)

/** Inserts a passkey. Undefined when its credential id is registered already. */
export async function insertPasskey(db: Database, row: NewPasskey): Promise<Passkey | undefined> {
  const [inserted] = await insert(db, row)
  return inserted && toPasskey(inserted)
}

const use = changeStatement<{ id: PasskeyId; counter: number; isBackedUp: boolean; now: Date }>(`
  update passkey set counter = $counter, is_backed_up = $isBackedUp, last_used_at = $now, updated_at = $now
  where document_id = $id and (counter < $counter or (counter = 0 and $counter = 0))`)

/** Records a use. False when the counter did not grow: of two concurrent uses of one signature one succeeds. */
export async function recordPasskeyUse(
  db: Database,
  id: PasskeyId,
  { counter, isBackedUp, now }: { counter: number; isBackedUp: boolean; now: Date },
): Promise<boolean> {
  return (await use(db, { id, counter, isBackedUp, now })) > 0
}

const rename = changeStatement<{ id: string; userId: UserId; name: string; now: Date }>(`
  update passkey set name = $name, updated_at = $now where document_id = $id and "user" = $userId`)

/** Renames a passkey of a person. False when the person has none with this id. */
export async function renamePasskey(
  db: Database,
  { id, userId, name, now }: { id: string; userId: UserId; name: string; now: Date },
): Promise<boolean> {
  return (await rename(db, { id, userId, name, now })) > 0
}

const selectOtherWay = statement<{ has_other_way: boolean }, { userId: UserId }>(`
  select exists (select from "user" where document_id = $userId and password_hash is not null)
    or exists (select from identity where "user" = $userId) as has_other_way`)

/** Whether a person has a password or a connected provider. */
export async function findOtherWay(db: Database, userId: UserId): Promise<boolean> {
  const [row] = await selectOtherWay(db, { userId })
  return row?.has_other_way ?? false
}

const remove = statement<
  PasskeyColumns & { has_other_way: boolean; has_other_factor: boolean },
  { id: string; userId: UserId }
>(`
  with removed as (delete from passkey where document_id = $id and "user" = $userId returning ${SELECTED}),
    other as (select exists (select from passkey where "user" = $userId and document_id <> $id) as passkey)
  select removed.*,
    other.passkey or exists (select from "user" where document_id = $userId and password_hash is not null)
      or exists (select from identity where "user" = $userId) as has_other_way,
    other.passkey
      or exists (select from totp_factor where "user" = $userId and confirmed_at is not null) as has_other_factor
  from removed, other`)

/**
 * Removes a passkey of a locked person, and says whether another way to sign in is left (a passkey, a password or a connected
 * provider), and another factor. Undefined when the person has none with this id.
 */
export async function deletePasskey(
  db: Database,
  id: string,
  userId: UserId,
): Promise<{ removed: Passkey; hasOtherWay: boolean; hasOtherFactor: boolean } | undefined> {
  const [row] = await remove(db, { id, userId })
  return row && { removed: toPasskey(row), hasOtherWay: row.has_other_way, hasOtherFactor: row.has_other_factor }
}

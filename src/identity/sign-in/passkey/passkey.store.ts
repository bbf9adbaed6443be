import type { Id, UserId } from '../../../base/id.ts'
import { columnsOf, wireOf } from '../../../http/shape/wire-row.ts'
import { countBehindLock } from '../../../postgres/statement/counted-limit.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../../postgres/statement/record.ts'
import { rowStatement, statement, testStatement } from '../../../postgres/statement/statement.ts'
import { PasskeyRow } from './passkey.schema.ts'

export type PasskeyId = Id<'passkey'>

/** A passkey. `credentialId` is in base64url; `counter` is that of the last use, 0 for a passkey that does not count. */
const passkey = defineRecord(
  'passkey',
  [...columnsOf(PasskeyRow), 'user', 'credential_id', 'public_key', 'counter', 'is_backup_eligible'],
  { user: 'userId' },
)
export type Passkey = RecordOf<typeof passkey>
export const toPasskeyRow = wireOf(passkey, PasskeyRow)

/** The passkeys of a user, as the base of a list. */
export function selectPasskeys(db: Database, userId: UserId) {
  return selectRecord(db.selectFrom('passkey'), passkey).where('user', '=', userId)
}

/** All passkeys of a user, the oldest first. */
export async function listPasskeys(db: Database, userId: UserId): Promise<Passkey[]> {
  return selectPasskeys(db, userId).orderBy('created_at').execute()
}

const count = countBehindLock<{ passkeys: number }, { userId: UserId }>({
  counts: 'passkeys of a user',
  lock: 'user',
  take: 'select from "user" where document_id = $userId for no key update',
  count: 'select count(*)::int as passkeys from passkey where "user" = $userId',
})

/** Number of passkeys of a user: no other transaction adds or removes one until this one ends. */
export async function countPasskeys(db: Database, userId: UserId): Promise<number> {
  const [row] = await count(db, { userId })
  return row?.passkeys ?? 0
}

/** The passkey with this credential id, of any user. */
export const findPasskey = rowStatement<Passkey, { credentialId: string }>(
  `select ${passkey.members()} from passkey where credential_id = $credentialId`,
)

type NewPasskey = Omit<Passkey, 'lastUsedAt' | 'createdAt' | 'updatedAt'> & { now: Date }

/** Inserts a passkey. Undefined when its credential id is registered already. */
export const insertPasskey = rowStatement<Passkey, NewPasskey>(`
  insert into passkey (document_id, "user", credential_id, public_key, counter, transports, name, is_backup_eligible,
    is_backed_up, created_at, updated_at)
  values ($id, $userId, $credentialId, $publicKey, $counter, $transports, $name, $isBackupEligible,
    $isBackedUp, $now, $now)
  on conflict (credential_id) do nothing returning ${passkey.members()}`)

/** Records a use. False when the counter did not grow: of two concurrent uses of one signature one succeeds. */
export const recordPasskeyUse = testStatement<{ id: PasskeyId; counter: number; isBackedUp: boolean; now: Date }>(`
  update passkey set counter = $counter, is_backed_up = $isBackedUp, last_used_at = $now, updated_at = $now
  where document_id = $id and (counter < $counter or (counter = 0 and $counter = 0))`)

/** Renames a passkey of a user. False when the user has none with this id. */
export const renamePasskey = testStatement<{ id: string; userId: UserId; name: string; now: Date }>(`
  update passkey set name = $name, updated_at = $now where document_id = $id and "user" = $userId`)

/** Whether a user has a password or a connected provider. */
export const findOtherWay = rowStatement<{ has_other_way: boolean }, { userId: UserId }, boolean>(
  `
  select exists (select from "user" where document_id = $userId and password_hash is not null)
    or exists (select from identity where "user" = $userId) as has_other_way`,
  (row) => row.has_other_way,
)

const remove = statement<Passkey & { hasOtherWay: boolean; hasOtherFactor: boolean }, { id: string; userId: UserId }>(`
  with removed as (delete from passkey where document_id = $id and "user" = $userId returning *),
    other as (select exists (select from passkey where "user" = $userId and document_id <> $id) as passkey)
  select ${passkey.members('removed')},
    other.passkey or exists (select from "user" where document_id = $userId and password_hash is not null)
      or exists (select from identity where "user" = $userId) as "hasOtherWay",
    other.passkey
      or exists (select from totp_factor where "user" = $userId and confirmed_at is not null) as "hasOtherFactor"
  from removed, other`)

/** Removes a passkey of a locked user, and returns what remains beside it. Undefined for an unknown one. */
export async function deletePasskey(
  db: Database,
  id: string,
  userId: UserId,
): Promise<{ removed: Passkey; hasOtherWay: boolean; hasOtherFactor: boolean } | undefined> {
  const [row] = await remove(db, { id, userId })
  if (!row) return undefined
  const { hasOtherWay, hasOtherFactor, ...removed } = row
  return { removed, hasOtherWay, hasOtherFactor }
}

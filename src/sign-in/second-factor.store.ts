import type { UserId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { aheadStatement, statement } from '../postgres/statement.ts'

/** What a person can prove a second factor with. */
export interface FactorCount {
  hasTotp: boolean
  passkeys: number
  /** Recovery codes that were not used. */
  recoveryCodes: number
}

interface CountColumns {
  has_totp: boolean
  passkeys: number
  recovery_codes: number
}

const count = statement<CountColumns>(`
  select exists (select from totp_factor where "user" = $1 and confirmed_at is not null) as has_totp,
    (select count(*)::int from passkey where "user" = $1) as passkeys,
    (select count(*)::int from recovery_code where "user" = $1 and used_at is null) as recovery_codes`)

/** Counts the factors of a person. */
export async function countFactors(db: Database, userId: UserId): Promise<FactorCount> {
  const [row] = await count(db, [userId])
  return {
    hasTotp: row?.has_totp ?? false,
    passkeys: row?.passkeys ?? 0,
    recoveryCodes: row?.recovery_codes ?? 0,
  }
}

const removeCodes = aheadStatement('delete from recovery_code where "user" = $1')
const insertCodes = statement(`
  insert into recovery_code ("user", code_hash, created_at) select $1, x.hash, $3 from unnest($2::bytea[]) as x (hash)`)

/** Replaces the recovery codes of a person. */
export async function replaceRecoveryCodes(
  db: Database,
  { userId, hashes, now }: { userId: UserId; hashes: readonly Buffer[]; now: Date },
): Promise<void> {
  await removeCodes(db, [userId])
  await insertCodes(db, [userId, hashes, now])
}

const takeCode = statement(`
  update recovery_code set used_at = $3 where "user" = $1 and code_hash = $2 and used_at is null returning 1`)

/** Uses a recovery code up. False when it is unknown or used: of two concurrent uses one succeeds. */
export async function takeRecoveryCode(
  db: Database,
  { userId, hash, now }: { userId: UserId; hash: Buffer; now: Date },
): Promise<boolean> {
  return (await takeCode(db, [userId, hash, now])).length > 0
}

const removeTotp = aheadStatement('delete from totp_factor where "user" = $1')
const removePasskeys = aheadStatement('delete from passkey where "user" = $1')
const removeChallenges = aheadStatement('delete from factor_challenge where "user" = $1')

/** Removes every factor, recovery code and open challenge of a person; sent with the next statement of the transaction. */
export async function deleteFactors(db: Database, userId: UserId): Promise<void> {
  await removeTotp(db, [userId])
  await removePasskeys(db, [userId])
  await removeCodes(db, [userId])
  await removeChallenges(db, [userId])
}

const hash = statement<{ password_hash: string | null }>(`
  select password_hash from "user" where document_id = $1 and is_actived and deleted_at is null`)

/** The hash of the password of an active person, to see that it is still the one that was right. */
export async function findPresentPasswordHash(db: Database, userId: UserId): Promise<string | undefined> {
  const [row] = await hash(db, [userId])
  return row?.password_hash ?? undefined
}

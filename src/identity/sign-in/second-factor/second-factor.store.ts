import type { UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import {
  closingStatement,
  type Joined,
  rowStatement,
  statement,
  testStatement,
} from '../../../postgres/statement/statement.ts'
import { OF_TOTP, type TotpFactor } from './totp-factor.store.ts'

/** Second factors of a user. */
export interface FactorCount {
  hasTotp: boolean
  passkeys: number
  recoveryCodes: number
}

const selectFactors = statement<Omit<FactorCount, 'hasTotp'> & Joined<TotpFactor>, { userId: UserId }>(`
  select c.*, ${OF_TOTP}
  from (
    select (select count(*)::int from passkey where "user" = $userId) as passkeys,
      (select count(*)::int from recovery_code where "user" = $userId and used_at is null) as "recoveryCodes") c
    left join totp_factor t on t."user" = $userId`)

/** Enrolled factors of a user: its authenticator app, confirmed or not, and the count of its factors. */
export async function findFactors(
  db: Database,
  userId: UserId,
): Promise<{ factor: TotpFactor | undefined; count: FactorCount }> {
  const [row] = await selectFactors(db, { userId })
  const { passkeys, recoveryCodes, ...joined } = row as Exclude<typeof row, undefined>
  const factor = joined.id === null ? undefined : (joined as TotpFactor)
  const hasTotp = factor !== undefined && factor.confirmedAt !== null
  return { factor, count: { hasTotp, passkeys, recoveryCodes } }
}

/** Counts the factors of a user. */
export async function countFactors(db: Database, userId: UserId): Promise<FactorCount> {
  return (await findFactors(db, userId)).count
}

/** Locks a user until the transaction ends, and reads behind the lock whether it has a second factor. */
export const lockHasFactor = rowStatement<{ has_factor: boolean }, { userId: UserId }, boolean>(
  'select lock_has_factor($userId) as has_factor',
  (row) => row.has_factor,
)

/** Replaces the recovery codes of a locked user, with the last statement of the transaction. */
export const replaceRecoveryCodes = closingStatement<{ userId: UserId; hashes: readonly Buffer[]; now: Date }>(`
  old_codes as (delete from recovery_code where "user" = $userId),
  new_codes as (
    insert into recovery_code ("user", code_hash, created_at)
    select $userId, x.hash, $now from unnest($hashes::bytea[]) as x (hash))`)

/** Spends a recovery code. False when it is unknown or used: of two concurrent uses one succeeds. */
export const takeRecoveryCode = testStatement<{ userId: UserId; hash: Buffer; now: Date }>(`
  update recovery_code set used_at = $now where "user" = $userId and code_hash = $hash and used_at is null`)

/** Removes every factor, recovery code and open challenge of a locked user, with the last statement of the transaction. */
export const deleteFactors = closingStatement<{ userId: UserId }>(
  `
  no_totp as (delete from totp_factor where "user" = $userId),
  no_passkeys as (delete from passkey where "user" = $userId),
  no_codes as (delete from recovery_code where "user" = $userId),
  no_challenges as (delete from factor_challenge where "user" = $userId)`,
  ({ userId }) => `u:${userId}`,
)

/** The hash of the password of an active user, if it has one, to check that it has not changed. Undefined for no active user. */
export const findPresentPassword = rowStatement<{ passwordHash: string | null }, { userId: UserId }>(`
  select password_hash as "passwordHash" from "user" where document_id = $userId and is_actived and deleted_at is null`)

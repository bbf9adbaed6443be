import type { Id, UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../../postgres/statement/record.ts'
import { rowStatement, statement, testStatement } from '../../../postgres/statement/statement.ts'

export type TotpFactorId = Id<'totp factor'>

/** An authenticator app; `confirmedAt` is null until its first code, `lastStep` the time step of the last one. */
const totp = defineRecord('totp_factor', [
  'document_id',
  'secret_encrypted',
  'confirmed_at',
  'last_step',
  'last_used_at',
  'created_at',
]).typed<{ lastStep: number | null }>()
export type TotpFactor = RecordOf<typeof totp>

/** The members of a factor `t`, to join to another statement. */
export const OF_TOTP = totp.members('t')

/** Enrols a secret, in place of an unconfirmed one; undefined beside a confirmed one. Returns the address too. */
export const enrolTotp = rowStatement<
  TotpFactor & { email: string },
  { id: TotpFactorId; userId: UserId; secretEncrypted: string; now: Date },
  { factor: TotpFactor; email: string }
>(
  `
  with enrolled as (
  insert into totp_factor (document_id, "user", secret_encrypted, created_at, updated_at)
  values ($id, $userId, $secretEncrypted, $now, $now)
  on conflict ("user") do update
    set document_id = excluded.document_id, secret_encrypted = excluded.secret_encrypted, last_step = null,
      created_at = excluded.created_at, updated_at = excluded.updated_at
    where totp_factor.confirmed_at is null
  returning ${totp.select()}, "user")
  select ${totp.members('e')}, u.email from enrolled e join "user" u on u.document_id = e."user"`,
  ({ email, ...factor }) => ({ factor, email }),
)

/** The factor of a user, confirmed or not. */
export const findTotp = rowStatement<TotpFactor, { userId: UserId }>(
  `select ${totp.members()} from totp_factor where "user" = $userId`,
)

/** Spends the code of a time step; with `confirms` the first one. False when this or a later step was used already. */
export const takeTotpStep = testStatement<{ id: TotpFactorId; step: number; now: Date; confirms: boolean }>(`
  update totp_factor
  set last_step = $step, last_used_at = $now, updated_at = $now,
    confirmed_at = case when $confirms then $now else confirmed_at end
  where document_id = $id and (last_step is null or last_step < $step) and (confirmed_at is null) = $confirms`)

/** Removes the factor of a locked user, and returns whether it has a passkey. Undefined without such a factor. */
export const deleteTotp = rowStatement<{ id: TotpFactorId; hasPasskey: boolean }, { userId: UserId }>(`
  delete from totp_factor where "user" = $userId
  returning document_id as id, exists (select from passkey p where p."user" = $userId) as "hasPasskey"`)

/** Factors after `after` whose secret is encrypted under an older key, locked until the transaction ends. */
export const listStaleTotps = statement<
  { id: TotpFactorId; secretEncrypted: string },
  { prefix: string; after: string | null; limit: number }
>(`
  select document_id as id, secret_encrypted as "secretEncrypted" from totp_factor
  where not starts_with(secret_encrypted, $prefix) and ($after::uuid is null or document_id > $after)
  order by document_id limit $limit for update skip locked`)

const replace = statement<never, { id: string; secretEncrypted: string }>(
  'update totp_factor set secret_encrypted = $secretEncrypted where document_id = $id',
)

/** Replaces the encrypted secret of a locked factor. */
export async function replaceTotpSecret(db: Database, id: string, secretEncrypted: string): Promise<void> {
  await replace(db, { id, secretEncrypted })
}

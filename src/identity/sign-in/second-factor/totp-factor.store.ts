import type { Id, UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { changeStatement, statement } from '../../../postgres/statement/statement.ts'

export type TotpFactorId = Id<'totp factor'>

/** A row of `totp_factor`. */
export interface TotpFactor {
  id: TotpFactorId
  secretEncrypted: string
  /** Null while it was enrolled and no code was sent yet. */
  confirmedAt: Date | null
  /** The time step of the last accepted code. */
  lastStep: number | null
  lastUsedAt: Date | null
  createdAt: Date
}

/** The columns of `OF_TOTP`. */
export interface TotpColumns {
  document_id: string
  secret_encrypted: string
  confirmed_at: Date | null
  last_step: string | null
  last_used_at: Date | null
  created_at: Date
}

const COLUMNS = 'document_id, secret_encrypted, confirmed_at, last_step, last_used_at, created_at'

/** The columns of a factor `t`, to join to another statement. */
export const OF_TOTP = 't.document_id, t.secret_encrypted, t.confirmed_at, t.last_step, t.last_used_at, t.created_at'

/** Maps a row of `totp_factor`. */
export function toTotpFactor(row: TotpColumns): TotpFactor {
  return {
    id: row.document_id as TotpFactorId,
    secretEncrypted: row.secret_encrypted,
    confirmedAt: row.confirmed_at,
    lastStep: row.last_step === null ? null : Number(row.last_step),
    lastUsedAt: row.last_used_at,
    createdAt: row.created_at,
  }
}

const enrol = statement<
  TotpColumns & { email: string },
  { id: TotpFactorId; userId: UserId; secretEncrypted: string; now: Date }
>(`
  with enrolled as (
  insert into totp_factor (document_id, "user", secret_encrypted, created_at, updated_at)
  values ($id, $userId, $secretEncrypted, $now, $now)
  on conflict ("user") do update
    set document_id = excluded.document_id, secret_encrypted = excluded.secret_encrypted, last_step = null,
      created_at = excluded.created_at, updated_at = excluded.updated_at
    where totp_factor.confirmed_at is null
  returning ${COLUMNS}, "user")
  select e.*, u.email from enrolled e join "user" u on u.document_id = e."user"`)

/**
 * Enrols a secret; replaces one that was not confirmed. Returns it with the address of the person; undefined when the person
 * has a confirmed one.
 */
export async function enrolTotp(
  db: Database,
  row: { id: TotpFactorId; userId: UserId; secretEncrypted: string; now: Date },
): Promise<{ factor: TotpFactor; email: string } | undefined> {
  const [enrolled] = await enrol(db, row)
  return enrolled && { factor: toTotpFactor(enrolled), email: enrolled.email }
}

const select = statement<TotpColumns, { userId: UserId }>(`select ${COLUMNS} from totp_factor where "user" = $userId`)

/** The factor of a person, confirmed or not. */
export async function findTotp(db: Database, userId: UserId): Promise<TotpFactor | undefined> {
  const [row] = await select(db, { userId })
  return row && toTotpFactor(row)
}

const take = changeStatement<{ id: TotpFactorId; step: number; now: Date; confirms: boolean }>(`
  update totp_factor
  set last_step = $step, last_used_at = $now, updated_at = $now,
    confirmed_at = case when $confirms then $now else confirmed_at end
  where document_id = $id and (last_step is null or last_step < $step) and (confirmed_at is null) = $confirms`)

/**
 * Uses the code of a time step up; with `confirms` the first one, which confirms the factor. False when a code of this or a
 * later step was used already: of two concurrent uses one succeeds.
 */
export async function takeTotpStep(
  db: Database,
  use: { id: TotpFactorId; step: number; confirms: boolean; now: Date },
): Promise<boolean> {
  return (await take(db, use)) > 0
}

const remove = statement<{ document_id: string; has_passkey: boolean }, { userId: UserId }>(`
  delete from totp_factor where "user" = $userId
  returning document_id, exists (select from passkey p where p."user" = $userId) as has_passkey`)

/** Removes the factor of a locked person, and says whether it has a passkey. Undefined when it has no such factor. */
export async function deleteTotp(
  db: Database,
  userId: UserId,
): Promise<{ id: TotpFactorId; hasPasskey: boolean } | undefined> {
  const [row] = await remove(db, { userId })
  return row && { id: row.document_id as TotpFactorId, hasPasskey: row.has_passkey }
}

const selectStale = statement<
  { document_id: string; secret_encrypted: string },
  { prefix: string; after: TotpFactorId | null; limit: number }
>(`
  select document_id, secret_encrypted from totp_factor
  where not starts_with(secret_encrypted, $prefix) and ($after::uuid is null or document_id > $after)
  order by document_id limit $limit for update skip locked`)

/** Up to `limit` factors after `after` whose secret an older key sealed, locked until the transaction ends. */
export async function listStaleTotps(
  db: Database,
  { prefix, after, limit }: { prefix: string; after: TotpFactorId | null; limit: number },
): Promise<{ id: TotpFactorId; secretEncrypted: string }[]> {
  const rows = await selectStale(db, { prefix, after, limit })
  return rows.map((row) => ({ id: row.document_id as TotpFactorId, secretEncrypted: row.secret_encrypted }))
}

const replace = statement<never, { id: TotpFactorId; secretEncrypted: string }>(
  'update totp_factor set secret_encrypted = $secretEncrypted where document_id = $id',
)

/** Replaces the sealed secret of a locked factor. */
export async function replaceTotpSecret(db: Database, id: TotpFactorId, secretEncrypted: string): Promise<void> {
  await replace(db, { id, secretEncrypted })
}

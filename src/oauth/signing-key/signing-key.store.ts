import type { Database } from '../../postgres/statement/database.ts'
import { ADVISORY_LOCKS } from '../../postgres/statement/locks.ts'
import { changeStatement, statement } from '../../postgres/statement/statement.ts'

/** The algorithms that the provider signs with. */
export const SIGNING_ALGORITHMS = ['ES256', 'RS256'] as const
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number]

/** A signing key, its private part encrypted. */
export interface SigningKeyRecord {
  kid: string
  alg: SigningAlgorithm
  /** Encrypted under the context of its `kid`. */
  privateKey: string
  /** Start of its signatures, until a newer key of its algorithm replaces it. */
  activeAt: Date
  /** End of its publication; null while no newer key replaces it. */
  expiresAt: Date | null
}

const selectLive = statement<SigningKeyRecord, { now: Date }>(`
  select kid, alg, private_key as "privateKey", active_at as "activeAt", expires_at as "expiresAt" from oauth_signing_key
  where expires_at is null or expires_at > $now order by active_at, kid`)

/** The keys that have not expired, in the order in which they become active. */
export async function listSigningKeys(db: Database, now: Date): Promise<SigningKeyRecord[]> {
  return selectLive(db, { now })
}

/** Serializes transactions that create keys. */
export const lockSigningKeys = statement<object>(
  `select pg_advisory_xact_lock(hashtext('${ADVISORY_LOCKS.signingKeys.key}'))`,
)

const insert = statement<object, Omit<SigningKeyRecord, 'expiresAt'> & { now: Date }>(`
  insert into oauth_signing_key (kid, alg, private_key, active_at, created_at)
  values ($kid, $alg, $privateKey, $activeAt, $now)`)

/** Inserts a key. */
export async function insertSigningKey(
  db: Database,
  key: Omit<SigningKeyRecord, 'expiresAt'>,
  now: Date,
): Promise<void> {
  await insert(db, { ...key, now })
}

const expire = statement<object, { kids: readonly string[]; expiresAt: Date }>(
  `update oauth_signing_key set expires_at = $expiresAt
   where kid = any($kids) and (expires_at is null or expires_at > $expiresAt)`,
)

/** Sets the end of the publication of keys. */
export async function expireSigningKeys(db: Database, kids: readonly string[], expiresAt: Date): Promise<void> {
  await expire(db, { kids, expiresAt })
}

const deleteOld = changeStatement<{ before: Date }>('delete from oauth_signing_key where expires_at < $before')

/** Deletes keys that expired before `before`. Returns their number. */
export async function deleteExpiredSigningKeys(db: Database, before: Date): Promise<number> {
  return deleteOld(db, { before })
}

const selectStale = statement<{ kid: string; private_key: string }, { prefix: string }>(
  'select kid, private_key from oauth_signing_key where not starts_with(private_key, $prefix)',
)

/** The keys that an older secret than the first encrypted. */
export async function listStaleSigningKeys(
  db: Database,
  prefix: string,
): Promise<{ kid: string; privateKey: string }[]> {
  return (await selectStale(db, { prefix })).map((row) => ({ kid: row.kid, privateKey: row.private_key }))
}

const replace = changeStatement<{ kid: string; from: string; to: string }>(
  'update oauth_signing_key set private_key = $to where kid = $kid and private_key = $from',
)

/** Replaces the ciphertext of a key, unless another process has replaced it. */
export async function replaceSigningKey(
  db: Database,
  kid: string,
  { from, to }: { from: string; to: string },
): Promise<boolean> {
  return (await replace(db, { kid, from, to })) > 0
}

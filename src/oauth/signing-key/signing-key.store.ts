import { ADVISORY_LOCKS } from '../../postgres/statement/locks.ts'
import { aheadStatement, changeStatement, statement } from '../../postgres/statement/statement.ts'

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

/** The keys that have not expired, in the order in which they become active. */
export const listSigningKeys = statement<SigningKeyRecord, { now: Date }>(`
  select kid, alg, private_key as "privateKey", active_at as "activeAt", expires_at as "expiresAt" from oauth_signing_key
  where expires_at is null or expires_at > $now order by active_at, kid`)

/** Serializes transactions that create keys; sent with the next statement of the transaction. */
export const lockSigningKeys = aheadStatement(
  `select pg_advisory_xact_lock(hashtext('${ADVISORY_LOCKS.signingKeys.key}'))`,
)

/** Inserts a key. */
export const insertSigningKey = statement<object, Omit<SigningKeyRecord, 'expiresAt'> & { now: Date }>(`
  insert into oauth_signing_key (kid, alg, private_key, active_at, created_at)
  values ($kid, $alg, $privateKey, $activeAt, $now)`)

/** Sets the end of the publication of keys. */
export const expireSigningKeys = statement<object, { kids: readonly string[]; expiresAt: Date }>(
  `update oauth_signing_key set expires_at = $expiresAt
   where kid = any($kids) and (expires_at is null or expires_at > $expiresAt)`,
)

/** Deletes keys that expired before `before`. Returns their number. */
export const deleteExpiredSigningKeys = changeStatement<{ before: Date }>(
  'delete from oauth_signing_key where expires_at < $before',
)

/** The keys that an older secret than the first encrypted. */
export const listStaleSigningKeys = statement<Pick<SigningKeyRecord, 'kid' | 'privateKey'>, { prefix: string }>(
  'select kid, private_key as "privateKey" from oauth_signing_key where not starts_with(private_key, $prefix)',
)

/** Replaces the ciphertext of a key. Returns 1, or 0 when another process has replaced it. */
export const replaceSigningKey = changeStatement<{ kid: string; from: string; to: string }>(
  'update oauth_signing_key set private_key = $to where kid = $kid and private_key = $from',
)

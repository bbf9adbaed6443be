import type { SessionId, UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { changeStatement, closingStatement, statement } from '../../../postgres/statement/statement.ts'

/** What a challenge is for. */
export type ChallengePurpose = 'sign-in' | 'passkey-registration' | 'passkey-sign-in' | 'passkey-factor'

/** A row of `factor_challenge`. */
export interface FactorChallenge {
  purpose: ChallengePurpose
  /** Null for a sign-in with a passkey. */
  userId: UserId | null
  /** The session that proves a factor again or registers a passkey. */
  sessionId: SessionId | null
  /** The network address that the challenge was made for. */
  addressHash: Buffer | null
  /** Of a sign-in with a password: a hash of the hash of the password that was right. */
  proofHash: Buffer | null
  attempts: number
  expiresAt: Date
  usedAt: Date | null
  createdAt: Date
}

interface ChallengeColumns {
  purpose: ChallengePurpose
  user: string | null
  session: string | null
  address_hash: Buffer | null
  proof_hash: Buffer | null
  attempts: number
  expires_at: Date
  used_at: Date | null
  created_at: Date
}

const COLUMNS = 'purpose, "user", session, address_hash, proof_hash, attempts, expires_at, used_at, created_at'

function toChallenge(row: ChallengeColumns): FactorChallenge {
  return {
    purpose: row.purpose,
    userId: row.user as UserId | null,
    sessionId: row.session as SessionId | null,
    addressHash: row.address_hash,
    proofHash: row.proof_hash,
    attempts: row.attempts,
    expiresAt: row.expires_at,
    usedAt: row.used_at,
    createdAt: row.created_at,
  }
}

/** A challenge that is to be. */
type NewChallenge = Omit<FactorChallenge, 'attempts' | 'usedAt' | 'createdAt'> & { now: Date }

const insert = closingStatement<NewChallenge & { hash: Buffer }>(`
  new_challenge as (
    insert into factor_challenge (challenge_hash, purpose, "user", session, address_hash, proof_hash, expires_at, created_at)
    values ($hash, $purpose, $userId, $sessionId, $addressHash, $proofHash, $expiresAt, $now))`)

/** Inserts a challenge by its hash, with the last statement of the transaction. */
export async function insertChallenge(db: Database, hash: Buffer, row: NewChallenge): Promise<void> {
  await insert(db, { ...row, hash })
}

const select = statement<ChallengeColumns, { hash: Buffer }>(
  `select ${COLUMNS} from factor_challenge where challenge_hash = $hash`,
)

/** The challenge with this hash, in any state. */
export async function findChallenge(db: Database, hash: Buffer): Promise<FactorChallenge | undefined> {
  const [row] = await select(db, { hash })
  return row && toChallenge(row)
}

const attempt = statement<ChallengeColumns, { hash: Buffer }>(`
  update factor_challenge set attempts = attempts + 1 where challenge_hash = $hash returning ${COLUMNS}`)

/** Counts an attempt, and locks the challenge until the transaction ends. The count includes this attempt. */
export async function countAttempt(db: Database, hash: Buffer): Promise<FactorChallenge | undefined> {
  const [row] = await attempt(db, { hash })
  return row && toChallenge(row)
}

const use = closingStatement<{ hash: Buffer; now: Date }>(`
  used_challenge as (update factor_challenge set used_at = $now where challenge_hash = $hash)`)

/** Uses a locked challenge up, with the last statement of the transaction. */
export async function useChallenge(db: Database, hash: Buffer, now: Date): Promise<void> {
  await use(db, { hash, now })
}

const removeOld = changeStatement<{ before: Date; limit: number }>(`
  delete from factor_challenge where challenge_hash = any(array(
    select challenge_hash from factor_challenge where expires_at < $before
    order by expires_at limit $limit for update skip locked))`)

/** Deletes up to `limit` challenges that expired before `before`. Returns their number. For maintenance. */
export async function deleteExpiredChallenges(db: Database, before: Date, limit: number): Promise<number> {
  return removeOld(db, { before, limit })
}

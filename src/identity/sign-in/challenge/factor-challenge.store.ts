import { deletionOfOld } from '../../../postgres/retention.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../../postgres/statement/record.ts'
import { closingStatement, statement } from '../../../postgres/statement/statement.ts'

/**
 * A challenge. Of a sign-in with a passkey `userId` is null; `sessionId` is the session that proves a factor again or
 * registers a passkey, `addressHash` the network address that it was made for, and `proofHash`, of a sign-in with a
 * password, a hash of the hash of the correct password.
 */
const challenge = defineRecord(
  'factor_challenge',
  ['purpose', 'user', 'session', 'address_hash', 'proof_hash', 'attempts', 'expires_at', 'used_at', 'created_at'],
  { user: 'userId', session: 'sessionId' },
)
export type FactorChallenge = RecordOf<typeof challenge>

/** The purpose of a challenge. */
export type ChallengePurpose = FactorChallenge['purpose']

/** A new challenge. */
type NewChallenge = Omit<FactorChallenge, 'attempts' | 'usedAt' | 'createdAt'> & { now: Date }

const insert = closingStatement<NewChallenge & { hash: Buffer }>(`
  new_challenge as (
    insert into factor_challenge (challenge_hash, purpose, "user", session, address_hash, proof_hash, expires_at, created_at)
    values ($hash, $purpose, $userId, $sessionId, $addressHash, $proofHash, $expiresAt, $now))`)

/** Inserts a challenge by its hash, with the last statement of the transaction. */
export async function insertChallenge(db: Database, hash: Buffer, row: NewChallenge): Promise<void> {
  await insert(db, { ...row, hash })
}

const select = statement<FactorChallenge, { hash: Buffer }>(
  `select ${challenge.members()} from factor_challenge where challenge_hash = $hash`,
)

/** The challenge with this hash, in any state. */
export async function findChallenge(db: Database, hash: Buffer): Promise<FactorChallenge | undefined> {
  const [row] = await select(db, { hash })
  return row
}

const attempt = statement<FactorChallenge, { hash: Buffer }>(`
  update factor_challenge set attempts = attempts + 1 where challenge_hash = $hash returning ${challenge.members()}`)

/** Counts an attempt, and locks the challenge until the transaction ends. The count includes this attempt. */
export async function countAttempt(db: Database, hash: Buffer): Promise<FactorChallenge | undefined> {
  const [row] = await attempt(db, { hash })
  return row
}

const use = closingStatement<{ hash: Buffer; now: Date }>(`
  used_challenge as (update factor_challenge set used_at = $now where challenge_hash = $hash)`)

/** Spends a locked challenge, with the last statement of the transaction. */
export async function useChallenge(db: Database, hash: Buffer, now: Date): Promise<void> {
  await use(db, { hash, now })
}

/** Deletes up to `limit` challenges that expired before `before`. Returns their number. For maintenance. */
export const deleteExpiredChallenges = deletionOfOld('factor_challenge', { key: 'challenge_hash', time: 'expires_at' })

import { deletionOfOld } from '../../../postgres/retention.ts'
import { defineRecord, type RecordOf } from '../../../postgres/statement/record.ts'
import { closingStatement, rowStatement } from '../../../postgres/statement/statement.ts'

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

type NewChallenge = Omit<FactorChallenge, 'attempts' | 'usedAt' | 'createdAt'> & { now: Date }

/** Inserts a challenge by its hash, with the last statement of the transaction. */
export const insertChallenge = closingStatement<NewChallenge & { hash: Buffer }>(`
  new_challenge as (
    insert into factor_challenge (challenge_hash, purpose, "user", session, address_hash, proof_hash, expires_at, created_at)
    values ($hash, $purpose, $userId, $sessionId, $addressHash, $proofHash, $expiresAt, $now))`)

/** The challenge with this hash, in any state. */
export const findChallenge = rowStatement<FactorChallenge, { hash: Buffer }>(
  `select ${challenge.members()} from factor_challenge where challenge_hash = $hash`,
)

/** Counts an attempt, and locks the challenge until the transaction ends. The count includes this attempt. */
export const countAttempt = rowStatement<FactorChallenge, { hash: Buffer }>(`
  update factor_challenge set attempts = attempts + 1 where challenge_hash = $hash returning ${challenge.members()}`)

/** Spends a locked challenge, with the last statement of the transaction. */
export const useChallenge = closingStatement<{ hash: Buffer; now: Date }>(`
  used_challenge as (update factor_challenge set used_at = $now where challenge_hash = $hash)`)

/** Deletes up to `limit` challenges that expired before `before`. Returns their number. For maintenance. */
export const deleteExpiredChallenges = deletionOfOld('factor_challenge', { key: 'challenge_hash', time: 'expires_at' })

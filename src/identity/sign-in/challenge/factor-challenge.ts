import { createHash } from 'node:crypto'
import type { SessionId, UserId } from '../../../base/id.ts'
import type { Random } from '../../../base/random.ts'
import { groupAddress } from '../../../http/request/address-group.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { hashSubject } from '../../throttle/login-throttle.ts'
import { type ChallengePurpose, type FactorChallenge, insertChallenge } from './factor-challenge.store.ts'

/** Lifetime of a challenge (docs/contract/second-factor.md#second-step). */
export const CHALLENGE_LIFETIME_MS = 5 * 60_000

const CHALLENGE_ATTEMPTS = 5

/** The hash of a challenge, as the table keeps it. */
export function hashChallenge(challenge: string): Buffer {
  return createHash('sha256').update(challenge).digest()
}

/** The hash of the network that a challenge is bound to: an address group, as the limits of rates count. */
function hashNetwork(address: string): Buffer {
  return hashSubject('address', groupAddress(address))
}

/** Creates a challenge of 256 random bits; only its hash is stored. */
export async function createChallenge(
  random: Random,
  db: Database,
  input: {
    purpose: ChallengePurpose
    userId: UserId | null
    sessionId?: SessionId | null
    address: string
    proofHash?: Buffer
    now: Date
  },
): Promise<string> {
  const { purpose, userId, sessionId = null, address, proofHash = null, now } = input
  const challenge = random.bytes(32).toString('base64url')
  const expiresAt = new Date(now.getTime() + CHALLENGE_LIFETIME_MS)
  const [hash, addressHash] = [hashChallenge(challenge), hashNetwork(address)]
  await insertChallenge(db, { hash, purpose, userId, sessionId, addressHash, proofHash, expiresAt, now })
  return challenge
}

/** Reason of a refused challenge. For the log and the audit log only. */
export type ChallengeRefusal =
  | 'challenge_unknown'
  | 'challenge_used'
  | 'challenge_expired'
  | 'challenge_exhausted'
  | 'other_network'
  | 'other_person'

/** The reason for which a request cannot answer a challenge, whose `attempts` count it; undefined when it can. Pure. */
export function findChallengeRefusal(
  challenge: FactorChallenge | undefined,
  expected: {
    purpose: ChallengePurpose
    address: string
    userId?: UserId | null
    sessionId?: SessionId | null
    now: Date
  },
): ChallengeRefusal | undefined {
  if (!challenge || challenge.purpose !== expected.purpose) return 'challenge_unknown'
  if (challenge.usedAt !== null) return 'challenge_used'
  if (challenge.expiresAt <= expected.now) return 'challenge_expired'
  if (challenge.attempts > CHALLENGE_ATTEMPTS) return 'challenge_exhausted'
  if (expected.userId !== undefined && challenge.userId !== expected.userId) return 'other_person'
  if (expected.sessionId !== undefined && challenge.sessionId !== expected.sessionId) return 'other_person'
  if (!challenge.addressHash?.equals(hashNetwork(expected.address))) return 'other_network'
  return undefined
}

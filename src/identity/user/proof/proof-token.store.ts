import type { UserId } from '../../../base/id.ts'
import { deletionOfOld } from '../../../postgres/retention.ts'
import { countBehindLock } from '../../../postgres/statement/counted-limit.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { closingStatement, isAfter, rowStatement } from '../../../postgres/statement/statement.ts'
import { mailRoomOf } from '../../mail/mail-room.ts'
import { hasEmail } from '../../user-record/user.store.ts'
import type { ProofPurpose } from './proof-token.ts'

/** A token that is to be. */
interface NewProofToken {
  tokenHash: Buffer
  purpose: ProofPurpose
  userId: UserId | null
  email: string
  expiresAt: Date
  now: Date
}

/** Inserts a token. Without a user the same statement inserts nothing, so that both take the same time. */
export const insertProofToken = closingStatement<NewProofToken>(`
  new_proof as (
    insert into proof_token (token_hash, purpose, "user", email, expires_at, created_at)
    select $tokenHash::bytea, $purpose::text, $userId::uuid, $email::text, $expiresAt::timestamptz, $now::timestamptz
    where $userId::uuid is not null)`)

/** The user of a requested mail. */
export interface ProofCandidate {
  userId: UserId
  email: string
  emailVerifiedAt: Date | null
  /** Tokens of the purpose that were made since a time. Below the limit the user is locked: no other token is being made. */
  recent: number
  /** Mails of the purpose that the address may still get. */
  room: number
}

/** Counts of one user. */
interface CountedLinks {
  purpose: ProofPurpose
  since: Date
  limit: number
}

const findWhere = <By extends object>(condition: string) =>
  countBehindLock<ProofCandidate, By & CountedLinks>({
    counts: 'links of a user in 15 minutes',
    lock: 'user',
    by: 'count_recent_links',
    call: `
      select u.document_id as "userId", u.email, u.email_verified_at as "emailVerifiedAt",
        count_recent_links(u.document_id, $purpose, $since, $limit) as recent,
        case $purpose when 'reset' then ${mailRoomOf('reset', 'u.email')}
          else ${mailRoomOf('verification', 'u.email')} end as room
      from "user" u where ${condition} and u.is_actived and u.deleted_at is null`,
  })

const findByEmail = findWhere<{ email: string }>(hasEmail('$email'))
const findById = findWhere<{ userId: UserId }>('u.document_id = $userId')

/**
 * The active user with this address or id, and the number of tokens of the purpose created after `since`: counted
 * behind the lock of the user while they are fewer than `limit`, so that parallel requests cannot exceed it.
 */
export async function findProofCandidate(
  db: Database,
  by: { email: string } | { userId: UserId },
  counted: CountedLinks,
): Promise<ProofCandidate | undefined> {
  const [row] = await ('email' in by ? findByEmail(db, { ...by, ...counted }) : findById(db, { ...by, ...counted }))
  return row
}

/** The user of a token that may still be used. */
export interface ProvenUser {
  userId: UserId
  email: string
  name: string | null
}

/** A presented token. */
interface PresentedProof {
  tokenHash: Buffer
  purpose: ProofPurpose
  now: Date
}

/** The user of a token. Undefined when it is unknown, used or expired, or the user has another address now. */
export const findProvenUser = rowStatement<ProvenUser, PresentedProof>(`
  select t."user" as "userId", u.email, u.name from proof_token t
  cross join lateral (select * from "user" x where x.document_id = t."user" offset 0) u
  where t.token_hash = $tokenHash and t.purpose = $purpose and ${isAfter('t.expires_at', '$now')}
    and u.is_actived and u.deleted_at is null and email_key(u.email) = email_key(t.email)`)

/**
 * Locks the user of a token until the transaction ends, and reads the token behind the lock: of two concurrent uses one
 * succeeds, since each deletes it (`deleteProofTokens`). Undefined like `findProvenUser`.
 */
export const lockProvenUser = rowStatement<LockedProven, PresentedProof>(`
  with u as (
    select * from "user"
    where document_id = (select "user" from proof_token where token_hash = $tokenHash)
      and is_actived and deleted_at is null
    for no key update
  )
  select u.document_id as "userId", u.email, u.name, u.email_verified_at is not null as "isEmailVerified",
    coalesce(cardinality(l.sessions), 0) as sessions, coalesce(cardinality(l.api_keys), 0) as "apiKeys"
  from u cross join lateral proven_address(u.document_id, $tokenHash, $purpose, $now) p (email)
  left join lateral lock_tokens(u.document_id) l on $purpose = 'reset'
  where email_key(p.email) = email_key(u.email)`)

/** The user of a token that is being used, locked. */
export interface LockedProven extends ProvenUser {
  isEmailVerified: boolean
  /** The number of unrevoked sessions and API keys of the user, locked, for a reset; 0 for a verification. */
  sessions: number
  apiKeys: number
}

/** Deletes the tokens of a user, who is locked, with the last statement of the transaction. */
export const deleteProofTokens = closingStatement<{ userId: UserId; purpose: ProofPurpose }>(
  'used_proofs as (delete from proof_token where "user" = $userId and purpose = $purpose)',
)

/** Deletes up to `limit` tokens that expired before `before`. Returns their number. For maintenance. */
export const deleteExpiredProofTokens = deletionOfOld('proof_token', { key: 'token_hash', time: 'expires_at' })

/** Marks the address of a locked user as verified, with the last statement of the transaction. */
export const proveAddress = closingStatement<{ userId: UserId; now: Date }>(`
  verified_user as (
    update "user" set email_verified_at = $now, updated_at = $now
    where document_id = $userId and email_verified_at is null)`)

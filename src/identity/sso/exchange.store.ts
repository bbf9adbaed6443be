import type { SessionId, UserId } from '../../base/id.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import { rowStatement } from '../../postgres/statement/statement.ts'
import {
  type AccountName,
  type SessionRecord,
  type StoredSession,
  session,
  toSessionRecord,
} from '../session/session.store.ts'

/** A handshake that is being exchanged. */
export interface HandshakeClaim {
  sessionId: SessionId
  userId: UserId
  nonceHash: Buffer
  expiresAt: Date
  now: Date
}

/** The session inside a handshake, with its user. */
export interface ClaimedHandshake {
  session: SessionRecord
  accounts: AccountName[]
  isUserActive: boolean
  /** Whether this call spent the nonce: the session can be continued, and the nonce was unused. */
  isClaimed: boolean
}

/**
 * Locks the session and its user until the transaction ends, reads them, and takes the nonce when the session can be
 * continued. A transaction that revokes the session or disables the user waits for this one, and then revokes the new
 * session; a second exchange of the nonce waits too, and is refused. Undefined when the user has no such session.
 */
export const claimHandshake = rowStatement<
  StoredSession & Omit<ClaimedHandshake, 'session'>,
  HandshakeClaim,
  ClaimedHandshake
>(
  `
  with found as (
    select ${session.select('s')}, u.is_actived and u.deleted_at is null as is_user_active
    from session s join "user" u on u.document_id = s."user"
    where s.document_id = $sessionId and s."user" = $userId for no key update of u, s
  ), claimed as (
    insert into sso_nonce (nonce_hash, expires_at)
    select $nonceHash, $expiresAt from found
    where is_user_active and revoked_at is null and expires_at > $now and parent is null and client_id is null
    on conflict do nothing returning nonce_hash
  )
  select ${session.members('found')}, open_accounts_of(found."user") as accounts, is_user_active as "isUserActive",
    exists (select from claimed) as "isClaimed"
  from found`,
  ({ accounts, isUserActive, isClaimed, ...stored }) => ({
    session: toSessionRecord(stored),
    accounts,
    isUserActive,
    isClaimed,
  }),
)

/** Deletes up to `limit` nonces of tokens that expired before `before`. Returns their number. */
export const deleteExpiredNonces = deletionOfOld('sso_nonce', { key: 'nonce_hash', time: 'expires_at' })

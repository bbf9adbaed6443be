import type { SessionId, UserId } from '../../base/id.ts'
import type { AccountName } from '../../identity/session/session.store.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import { aheadStatement, soleRowStatement, statement } from '../../postgres/statement/statement.ts'

/** References of an access token. */
export interface TokenClaim {
  /** The user, or the subject at a managed engine. */
  userId: UserId | null
  subject: string | null
  /** Whether the database keeps the token. */
  isKept: boolean
  clientId: string
  grantId: string | null
  tokenId: string | null
  /** Start of the token's session at a managed engine. */
  beganAt: Date | null
  now: Date
}

/** Facts of the database about it. */
export interface ClaimedToken {
  /** Null when no user is known. */
  userId: UserId | null
  isUserActive: boolean
  /** Reasons against client, grant or token. */
  fault: string | null
  /** The accounts of the user, the longest membership first. */
  accounts: AccountName[]
  /** The current scopes of the grant of a stored token; null when the database does not store the token. */
  allowedScopes: string[] | null
  /** The browser session that a stored token ends with; null for one that outlives it. */
  browserSession: SessionId | null
  /** The grant here of the app at a managed engine; null when none is known, and when the database keeps the token. */
  engineGrant: string | null
}

/** Locks the grant and the user of an access token until the transaction ends, and reads the facts for the exchange. */
export const claimExchange = soleRowStatement<ClaimedToken, TokenClaim>(`
  select holder as "userId", is_active as "isUserActive", fault, accounts, allowed as "allowedScopes",
    browser as "browserSession", kept_grant as "engineGrant"
  from claim_exchange($userId, $subject, $isKept, $clientId, $grantId, $tokenId, $now, $beganAt)`)

/** Revokes the sessions of a grant, and with `isFinal` the grant. Returns those revoked by this call. */
export const endSessionsOfGrant = statement<
  { document_id: SessionId },
  { grantId: string; isFinal: boolean; now: Date },
  SessionId
>('select end_grant($grantId, $isFinal, $now) as document_id', (row) => row.document_id)

/** Revokes a grant with its sessions, in the round trip of the next statement of the transaction. */
export const endGrantWithNext = aheadStatement<{ grantId: string; now: Date }>(
  'select from end_grant($grantId, true, $now)',
)

/** Revokes the sessions of the apps of a locked client, in the round trip of the next statement of the transaction. */
export const endClientWithNext = aheadStatement<{ clientId: string; now: Date }>(
  'select from end_client($clientId, $now)',
)

/** Deletes up to `limit` grants that ended before `before`. Returns their number. */
export const deleteEndedGrants = deletionOfOld('oauth_ended_grant', { key: 'grant_id', time: 'ended_at' })

import type { SessionId, UserId } from '../../base/id.ts'
import type { AccountName } from '../../identity/session/session.store.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { aheadStatement, statement } from '../../postgres/statement/statement.ts'

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

const claim = statement<
  {
    holder: UserId | null
    is_active: boolean
    fault: string | null
    accounts: AccountName[]
    allowed: string[] | null
    browser: SessionId | null
    kept_grant: string | null
  },
  TokenClaim
>('select * from claim_exchange($userId, $subject, $isKept, $clientId, $grantId, $tokenId, $now, $beganAt)')

/** Locks the grant and the user of an access token until the transaction ends, and reads the facts for the exchange. */
export async function claimExchange(db: Database, token: TokenClaim): Promise<ClaimedToken> {
  const [row] = await claim(db, token)
  if (!row) throw new Error('claim_exchange returns one row')
  const { holder: user, is_active: isUserActive, fault, accounts, allowed: allowedScopes } = row
  const { browser: browserSession, kept_grant: engineGrant } = row
  return { userId: user, isUserActive, fault, accounts, allowedScopes, browserSession, engineGrant }
}

const endGrant = statement<{ document_id: SessionId }, { grantId: string; isFinal: boolean; now: Date }>(
  'select end_grant($grantId, $isFinal, $now) as document_id',
)

/** Revokes the sessions of a grant, and with `isFinal` the grant. Returns those revoked by this call. */
export async function endGrantRows(
  db: Database,
  end: { grantId: string; isFinal: boolean; now: Date },
): Promise<SessionId[]> {
  return (await endGrant(db, end)).map((row) => row.document_id)
}

const endGrantAhead = aheadStatement<{ grantId: string; now: Date }>('select from end_grant($grantId, true, $now)')

/** Revokes a grant with its sessions, in the round trip of the next statement of the transaction. */
export async function endGrantWithNext(db: Database, grantId: string, now: Date): Promise<void> {
  await endGrantAhead(db, { grantId, now })
}

const endClientAhead = aheadStatement<{ clientId: string; now: Date }>('select from end_client($clientId, $now)')

/** Revokes the sessions of the apps of a locked client, in the round trip of the next statement of the transaction. */
export async function endClientWithNext(db: Database, clientId: string, now: Date): Promise<void> {
  await endClientAhead(db, { clientId, now })
}

/** Deletes up to `limit` grants that ended before `before`. Returns their number. */
export const deleteEndedGrants = deletionOfOld('oauth_ended_grant', { key: 'grant_id', time: 'ended_at' })

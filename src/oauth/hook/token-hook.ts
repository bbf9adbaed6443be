import type { AccountId, UserId } from '../../base/id.ts'
import { listScopeNames } from '../scope/scope.ts'

/** The user of the requested token. */
export interface TokenSubject {
  userId: UserId
  isActive: boolean
  /** The account with the longest membership. */
  accountId: AccountId | null
}

/** Requested token: for an app, or with `client` null for the user itself at a managed engine. */
export interface TokenRequest {
  /** Undefined for an unknown user. */
  subject: TokenSubject | undefined
  client: { id: string; scope: string } | null
  /** Scopes of the API that the user granted the app, where the engine knows none of them. */
  apiScope?: string | null
  /** Whether the user revoked the grant of the app. */
  isRevoked?: boolean
  /** Whether an account of the user signs it in by its connection alone, which no managed engine knows. */
  isClosed?: boolean
  /** Time of the last revocation of the sessions of the user's apps. */
  appsEndedAt?: Date | null
  /** Start of the token's session, in seconds since 1970; undefined if the engine does not send it. */
  beganAtSeconds?: number | undefined
}

/** Reasons for which there is no token. */
type TokenRefusalReason = 'user_unknown' | 'user_disabled' | 'grant_revoked' | 'connection_required' | 'access_ended'

/** Claims to add to the token, or the reason for which there is none. */
export type TokenDecision =
  | { kind: 'issue'; claims: Readonly<Record<string, unknown>> }
  | { kind: 'refuse'; reason: TokenRefusalReason }

/**
 * Decides whether a user gets a token, and with which claims (docs/contract/oauth-exchange.md#access-token-hook), at issue
 * and at every refresh. A user who signs in at a managed engine for the first time is unknown here and gets a token of
 * its own; an app never gets one for an unknown user. Pure.
 */
export function decideTokenClaims({
  subject,
  client,
  apiScope = null,
  isRevoked = false,
  isClosed = false,
  appsEndedAt = null,
  beganAtSeconds,
}: TokenRequest): TokenDecision {
  if (!subject) return client ? { kind: 'refuse', reason: 'user_unknown' } : { kind: 'issue', claims: {} }
  if (!subject.isActive) return { kind: 'refuse', reason: 'user_disabled' }
  if (!client) return { kind: 'issue', claims: {} }
  if (isRevoked) return { kind: 'refuse', reason: 'grant_revoked' }
  if (appsEndedAt && beganAtSeconds !== undefined && beganAtSeconds <= Math.floor(appsEndedAt.getTime() / 1000))
    return { kind: 'refuse', reason: 'access_ended' }
  if (isClosed) return { kind: 'refuse', reason: 'connection_required' }
  const maySeeAccounts = listScopeNames(`${client.scope} ${apiScope ?? ''}`).includes('account:read')
  return {
    kind: 'issue',
    claims: {
      ...(maySeeAccounts && subject.accountId !== null && { account: subject.accountId }),
      ...(apiScope && { api_scope: apiScope }),
    },
  }
}

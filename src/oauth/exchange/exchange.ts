import { NIL_ID, type UserId } from '../../base/id.ts'
import {
  type IssuedSession,
  openLockedSession,
  type SessionDeps,
  type SessionOrigin,
} from '../../identity/session/session.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listScopeNames } from '../scope/scope.ts'
import { type AccessToken, LEEWAY_SECONDS, type TokenRefusal, verifyAccessToken } from './access-token.ts'
import { type ClaimedToken, claimExchange } from './exchange.store.ts'
import { buildEngineAway, type TokenIssuer } from './token-issuer.ts'

export { endSessionsOfGrant } from './exchange.store.ts'

/** Dependencies of an exchange. */
export interface ExchangeDeps extends SessionDeps {
  /** The issuers whose tokens are exchanged. Without any, every token is refused. */
  tokenIssuers: readonly TokenIssuer[]
}

/** Reason of a refused exchange. For the log and the audit log only: the answer is the same for all. */
export type ExchangeRefusal =
  | TokenRefusal
  | 'user_unknown'
  | 'user_inactive'
  | 'scope_exceeded'
  | 'client_mismatch'
  /** Facts of the database or of the engine. */
  | (string & {})

/** A token that was presented: a genuine one, or the reason of its refusal. */
export type Presented =
  | { ok: true; token: AccessToken }
  | { ok: false; reason: ExchangeRefusal; token: AccessToken | undefined }

/** An opened session. */
export interface Exchanged {
  kind: 'exchanged'
  issued: IssuedSession
  token: AccessToken
  userId: UserId
  /** Maximum scope of the session. */
  scope: string
}

/** A refused exchange. `token` has the claims of a genuine token. */
export interface RefusedExchange {
  kind: 'refused'
  reason: ExchangeRefusal
  token: AccessToken | undefined
  userId: UserId | null
}

/** Verifies an access token, also at a managed engine, outside any transaction. Throws 503 `dependency_unavailable`. */
export async function presentToken(
  { tokenIssuers }: Pick<ExchangeDeps, 'tokenIssuers'>,
  text: string,
  now: Date,
): Promise<Presented> {
  const result = await verifyAccessToken(tokenIssuers, text, now)
  if (!result.ok) return { ok: false, reason: result.reason, token: undefined }
  const { token, issuer } = result
  if (!issuer.askOnline) return { ok: true, token }
  const answer = await issuer.askOnline(text).catch((cause: unknown) => {
    throw buildEngineAway(cause)
  })
  return answer.isLiving ? { ok: true, token } : { ok: false, reason: answer.reason, token }
}

/** Matches nothing in the database: a refused token is looked up there like any other. */
const NOBODY: Pick<AccessToken, 'isOwn' | 'isKept' | 'subject' | 'clientId' | 'grantId' | 'tokenId' | 'beganAt'> = {
  isOwn: true,
  isKept: false,
  subject: NIL_ID,
  clientId: '',
  grantId: null,
  tokenId: null,
  beganAt: new Date(0),
}

/**
 * Exchanges a presented access token for a session of its own (docs/contract/oauth-exchange.md#exchange), in the
 * caller's transaction, which must be committed also for a refusal. The session belongs to the app, limited to `scope`
 * if the caller requests fewer scopes than the token has. It expires with the token and cannot be refreshed. Every
 * refusal does the same work.
 */
export async function exchangeToken(
  deps: SessionDeps,
  tx: Database,
  input: {
    presented: Presented
    /** Requested scope; default: all of the token's. */
    scope?: string | undefined
    /** The claimed client of the caller. */
    clientId?: string | undefined
    origin: SessionOrigin
    now: Date
  },
): Promise<Exchanged | RefusedExchange> {
  const { presented, clientId: named, origin, now } = input
  const { isOwn, isKept, subject, clientId, grantId, tokenId, beganAt } = presented.ok ? presented.token : NOBODY
  const found = await claimExchange(tx, {
    userId: isOwn ? (subject as UserId) : null,
    subject: isOwn ? null : subject,
    ...{ isKept, clientId, grantId, tokenId, beganAt, now },
  })
  const { token } = presented
  if (!presented.ok) return { kind: 'refused', reason: presented.reason, token, userId: null }
  const { userId } = found
  if (userId === null) return { kind: 'refused', reason: 'user_unknown', token, userId }
  const granted = limitScope(presented.token.scope, found.allowedScopes)
  const scope = input.scope ?? granted
  const reason = findRefusal(found, presented.token, { scope, granted, named })
  if (reason) return { kind: 'refused', reason, token, userId }
  const issued = await openLockedSession(deps, tx, {
    userId,
    accounts: found.accounts,
    origin,
    // At a managed engine the grant id is that of a session.
    client: { id: clientId, scope, grantId: isOwn ? grantId : found.engineGrant },
    endsWith: found.browserSession,
    isRefreshable: false,
    ...(presented.token.authTime && { authTime: presented.token.authTime }),
    // A token within its leeway opens a session of some seconds.
    endsAt: new Date(presented.token.expiresAt.getTime() + 2 * LEEWAY_SECONDS * 1000),
    now,
  })
  return { kind: 'exchanged', issued, token: presented.token, userId, scope }
}

/** The reason for which a genuine token of a known user opens no session; undefined when it does. Pure. */
function findRefusal(
  found: ClaimedToken,
  token: AccessToken,
  { scope, granted, named }: { scope: string; granted: string; named: string | undefined },
): ExchangeRefusal | undefined {
  if (!found.isUserActive) return 'user_inactive'
  if (found.fault !== null) return found.fault
  if (named !== undefined && named !== token.clientId) return 'client_mismatch'
  const names = listScopeNames(granted)
  return listScopeNames(scope).every((name) => names.includes(name)) ? undefined : 'scope_exceeded'
}

/** The scopes of a token that its grant still has: the user may have narrowed it since. Pure. */
function limitScope(scope: string, allowed: readonly string[] | null): string {
  if (allowed === null) return scope
  return listScopeNames(scope)
    .filter((name) => allowed.includes(name))
    .join(' ')
}

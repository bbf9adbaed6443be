import type { SessionId, UserId } from '../../../base/id.ts'
import type { Keyring } from '../../../base/keyring.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { findSealedEngineToken, insertEngineSession } from './engine-session.store.ts'
import type { LoginFlow } from './login-flow.store.ts'

export { deleteEngineSession } from './engine-session.store.ts'

/** The page on which a user decides about an app of a managed engine. */
export const ENGINE_DECISION_PATH = '/auth/oauth/engine'

/** Lifetime of a stored token: that of an authorization at the engine. */
const KEPT_MS = 600_000

const contextOf = (sessionId: SessionId) => `engine-session:${sessionId}`

/** Whether a sign-in needs the engine's token (docs/contract/oauth-exchange.md#consent-at-a-managed-engine). Pure. */
export function leadsToDecision(
  { redirectUrl, linkTo, isBound }: Pick<LoginFlow, 'redirectUrl' | 'linkTo' | 'isBound'>,
  baseUrl: string,
): boolean {
  const [page, target] = [new URL(`${baseUrl}${ENGINE_DECISION_PATH}`), URL.parse(redirectUrl)]
  if (linkTo !== null || !isBound) return false
  return target?.origin === page.origin && target.pathname === page.pathname
}

/** Stores the user's token at the engine, encrypted, for the session that the same transaction opens. */
export function keepEngineToken(
  { keyring }: { keyring: Keyring },
  tx: Database,
  { sessionId, userId, token, now }: { sessionId: SessionId; userId: UserId; token: string; now: Date },
): Promise<void> {
  const expiresAt = new Date(now.getTime() + KEPT_MS)
  return insertEngineSession(tx, { sessionId, userId, token: keyring.seal(token, contextOf(sessionId)), expiresAt })
}

/** The user's token at the engine, for this session. Undefined for a missing or expired one. */
export async function findEngineToken(
  { keyring }: { keyring: Keyring },
  db: Database,
  { sessionId, now }: { sessionId: SessionId; now: Date },
): Promise<string | undefined> {
  const sealed = await findSealedEngineToken(db, { sessionId, now })
  return sealed === undefined ? undefined : keyring.open(sealed, contextOf(sessionId))
}

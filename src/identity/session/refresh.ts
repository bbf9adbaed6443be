import type { Keyring } from '../../base/keyring.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { lockRefreshToken, type StoredToken, spendRefreshToken } from './refresh.store.ts'
import { decideRefresh, deriveSuccessor, hashClient } from './refresh-decision.ts'
import { endSessionTree, type SessionRecord } from './session.store.ts'
import {
  earlier,
  hashToken,
  type IssuedSession,
  REFRESH_LIFETIME_MS,
  type SessionDeps,
  type SessionOrigin,
  signFor,
} from './session.ts'

/** The purpose of the keys that successors of refresh tokens are derived with. */
const SUCCESSOR_PURPOSE = 'refresh token successor v1'

/** Bytes of the salt of a successor. */
const SALT_BYTES = 16

/** Dependencies of a refresh. */
export interface RefreshDeps extends SessionDeps {
  keyring: Pick<Keyring, 'deriveKeys'>
}

/** The tokens of a refresh. */
export type RotatedTokens = Omit<IssuedSession, 'account' | 'refreshToken'> & { refreshToken: string }

/** A refreshed session and its new tokens. `isRepeat`: the same client repeated the request, and nothing changed. */
export interface Refreshed {
  kind: 'refreshed'
  session: SessionRecord
  issued: RotatedTokens
  isRepeat: boolean
}

/** The reason of a refused refresh, for the log and the audit trail only, and the session of the token. */
export interface RefreshRefusal {
  kind: 'refused'
  reason: 'unknown' | 'reused' | 'expired' | 'session_ended'
  session: SessionRecord | undefined
}

/**
 * Rotates a refresh token (docs/contract/sessions.md#refresh-tokens), in the caller's transaction, in one statement and
 * what is written with the last one. The client that spent a token gets the same successor again for 10 s
 * (docs/contract/sessions.md#repeated-refresh); any other reuse revokes the session and those opened from it. Concurrent
 * refreshes of a token follow each other by its lock. The caller must commit the revocation of a refusal.
 */
export async function refreshSession(
  deps: RefreshDeps,
  tx: Database,
  input: { refreshToken: string; origin: SessionOrigin; now: Date },
): Promise<Refreshed | RefreshRefusal> {
  const { refreshToken, origin, now } = input
  const token = await lockRefreshToken(tx, { tokenHash: hashToken(refreshToken), now })
  if (!token) return { kind: 'refused', reason: 'unknown', session: undefined }
  const client = hashClient(origin)
  const decision = decideRefresh(token, { client, now })
  const next =
    decision === 'rotate'
      ? await rotate(deps, tx, { refreshToken, token, client, now })
      : decision === 'repeat'
        ? findSuccessor(deps, refreshToken, token)
        : undefined
  const { session } = token
  if (next !== undefined) {
    const issued = { sessionId: session.id, ...signFor(deps, session, now), refreshToken: next }
    return { kind: 'refreshed', session, issued, isRepeat: decision === 'repeat' }
  }
  // A repeat whose successor no listed key derives is treated as a reuse.
  const reason = decision === 'expired' || decision === 'session_ended' ? decision : 'reused'
  if (reason === 'reused') await endSessionTree(tx, { id: session.id, now })
  return { kind: 'refused', reason, session }
}

async function rotate(
  deps: RefreshDeps,
  tx: Database,
  { refreshToken, token, client, now }: { refreshToken: string; token: StoredToken; client: Buffer; now: Date },
): Promise<string> {
  const { session } = token
  const [key] = deps.keyring.deriveKeys(SUCCESSOR_PURPOSE)
  if (!key) throw new Error('a refresh needs at least one key')
  const salt = deps.random.bytes(SALT_BYTES)
  const successor = deriveSuccessor(refreshToken, salt, key)
  const expiresAt = earlier(new Date(now.getTime() + REFRESH_LIFETIME_MS), session.expiresAt)
  const spent = { tokenHash: hashToken(refreshToken), client, sessionId: session.id }
  await spendRefreshToken(tx, { ...spent, successorSalt: salt, successorHash: hashToken(successor), expiresAt, now })
  return successor
}

/** The successor that was issued for a spent token, derived again under each key. */
function findSuccessor(
  { keyring }: RefreshDeps,
  refreshToken: string,
  { successorSalt: salt, successorHash: hash }: StoredToken,
): string | undefined {
  if (!salt || !hash) return undefined
  return keyring
    .deriveKeys(SUCCESSOR_PURPOSE)
    .map((key) => deriveSuccessor(refreshToken, salt, key))
    .find((successor) => hashToken(successor).equals(hash))
}

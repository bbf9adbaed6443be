import type { Caller } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findTokenLives } from './token-life.store.ts'

/** The session or API key of a token, in the form of an invalidation: `s:<session>` or `k:<API key>`. */
export type TokenName = `s:${string}` | `k:${string}`

/** The session or API key of a caller. */
export function nameToken({ sessionId, apiKeyId }: Pick<Caller, 'sessionId' | 'apiKeyId'>): TokenName | undefined {
  if (sessionId !== null) return `s:${sessionId}`
  return apiKeyId === null ? undefined : `k:${apiKeyId}`
}

/** Whether an invalidation names a session or an API key. */
export const isTokenName = (invalidation: string): invalidation is TokenName => /^[sk]:/.test(invalidation)

/**
 * Known expiries of the valid ones of these sessions and API keys: a session's latest JWT, a key's expiry, null for a
 * key without one. Ended ones, and sessions whose last JWT has expired, are omitted.
 */
export async function readTokenLives(
  db: Database,
  names: readonly TokenName[],
  now: Date,
): Promise<Map<TokenName, Date | null>> {
  const idsOf = (kind: string) => names.filter((name) => name.startsWith(kind)).map((name) => name.slice(2))
  const found = await findTokenLives(db, { sessions: idsOf('s:'), keys: idsOf('k:'), now })
  const living = found.filter(({ endsAt }) => endsAt === null || endsAt > now)
  return new Map(living.map(({ token, endsAt }) => [token as TokenName, endsAt]))
}

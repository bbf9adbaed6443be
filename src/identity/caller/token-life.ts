import type { Caller } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findTokenLives } from './token-life.store.ts'

/** The session or API key of a token, as an invalidation names it: `s:<session>` or `k:<API key>`. */
export type TokenName = `s:${string}` | `k:${string}`

/** The session or API key that a caller came with. */
export function nameToken({ sessionId, apiKeyId }: Pick<Caller, 'sessionId' | 'apiKeyId'>): TokenName | undefined {
  if (sessionId !== null) return `s:${sessionId}`
  return apiKeyId === null ? undefined : `k:${apiKeyId}`
}

/** Whether an invalidation names a session or an API key. */
export const isTokenName = (invalidation: string): invalidation is TokenName => /^[sk]:/.test(invalidation)

/**
 * Until when each of these sessions and API keys that live serves its holder, as far as is known now: a session with its
 * latest JWT, a key until it expires, null for one that does not. Those that have ended, or whose last JWT has expired, are
 * left out.
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

import type { Caller } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findTokenLives } from './token-life.store.ts'

/**
 * The session or API key of a token, in the form of an invalidation: `s:<session>` or `k:<API key>`; with `:lacking` while
 * it lacks an account of its user, with `:proven` while a proof opens that account
 * (docs/contract/connections.md#members-of-several-accounts). What one of the three was granted ends with its state.
 */
export type TokenName = `s:${string}` | `k:${string}`

/** The session or API key of a caller. */
export function nameToken({
  sessionId,
  apiKeyId,
  narrowing,
}: Pick<Caller, 'sessionId' | 'apiKeyId' | 'narrowing'>): TokenName | undefined {
  const state = narrowing ? (narrowing.provenUntil === null ? ':lacking' : ':proven') : ''
  if (sessionId !== null) return `s:${sessionId}${state}`
  return apiKeyId === null ? undefined : `k:${apiKeyId}${state}`
}

/** Whether an invalidation, or the name of a granted token, names a session or an API key. */
export const isTokenName = (invalidation: string): invalidation is TokenName => /^[sk]:/.test(invalidation)

/** The names of a session or API key in each state, for an invalidation of it or one of the names. */
export function listTokenNames(name: TokenName): TokenName[] {
  const plain = name.split(':').slice(0, 2).join(':') as TokenName
  return [plain, `${plain}:lacking`, `${plain}:proven`]
}

/**
 * Known expiries of the valid ones of these sessions and API keys: a session's latest JWT, a key's expiry, null for a
 * key without one. Ended ones, and sessions whose last JWT has expired, are omitted.
 */
export async function readTokenLives(
  db: Database,
  names: readonly TokenName[],
  now: Date,
): Promise<Map<TokenName, Date | null>> {
  const ofKind = (kind: string) => names.filter((name) => name.startsWith(kind)).map((name) => name.split(':'))
  const pick = (parts: string[][], index: number) => parts.map((part) => part[index] ?? '')
  const [sessions, keys] = [ofKind('s:'), ofKind('k:')]
  const found = await findTokenLives(db, {
    ...{ sessions: pick(sessions, 1), sessionStates: pick(sessions, 2) },
    ...{ keys: pick(keys, 1), keyStates: pick(keys, 2) },
    now,
  })
  const living = found.filter(({ endsAt }) => endsAt === null || endsAt > now)
  return new Map(living.map(({ token, endsAt }) => [token as TokenName, endsAt]))
}

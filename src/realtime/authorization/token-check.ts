import type { Logger } from 'pino'
import type { UserId } from '../../base/id.ts'
import type { TokenName } from '../../identity/caller/token-life.ts'
import type { GrantedAccess, GrantedToken } from './granted-access.ts'

export interface TokenCheckDeps {
  /** Expiry of the live ones of these sessions and API keys. */
  readTokens: (names: readonly TokenName[], now: Date) => Promise<ReadonlyMap<TokenName, Date | null>>
  grants: GrantedAccess
  logger: Logger
}

/** Ends the grants of ended tokens. `ended`: users without connections by now. Rejects on failure. */
export async function checkTokens(
  { readTokens, grants, logger }: TokenCheckDeps,
  tokens: readonly GrantedToken[],
  { ended, now }: { ended: ReadonlySet<UserId>; now: Date },
): Promise<void> {
  if (tokens.length === 0) return
  const living = await readTokens(
    tokens.map(({ name }) => name),
    now,
  )
  for (const token of tokens) {
    const endsAt = living.get(token.name)
    if (endsAt !== undefined && endsAt?.getTime() !== token.endsAt?.getTime())
      await grants.extendToken({ ...token, endsAt })
  }
  const gone = tokens.filter(({ name }) => !living.has(name))
  if (gone.length === 0) return
  await grants.endTokens(gone, ended)
  logger.info({ tokens: gone.length }, 'realtime subscriptions ended: their session or API key ended')
}

import { buildCache } from '../../base/cache.ts'
import type { Clock } from '../../base/clock.ts'
import type { AccountId, UserId } from '../../base/id.ts'
import type { TokenName } from '../../identity/caller/token-life.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  extendStoredToken,
  listGrantedUsers,
  listTokensAfter,
  readDueTokens,
  readGrants,
  readTokens,
  removeGrants,
  removeStoredToken,
  type StoredGrant,
  type StoredToken,
  saveGrants,
} from './grant.store.ts'
import type { GrantedAccess } from './granted-access.ts'

/** Maximum number of users whose stored grants a process caches; grants of others are stored again. */
const USERS_LIMIT = 50_000

/** Time for which a stored grant is not stored again. Less than the retention of grants. */
const STORED_FOR_MS = 3_600_000

const PAGE_SIZE = 500

type Known = Map<string, { account: AccountId; storedAtMs: number }>

/** Builds the grants at a provider outside the service: a table. Concurrent and repeated grants share statements. */
export function buildStoredGrants(deps: {
  db: Database
  clock: Pick<Clock, 'now'>
  endConnections: (userId: UserId) => Promise<void>
}): GrantedAccess {
  const { db, clock, endConnections } = deps
  const known = buildCache<UserId, Known>({ limit: USERS_LIMIT })
  let waiting = new Map<string, StoredGrant>()
  let saving: Promise<void> | undefined
  const knownTokens = buildCache<TokenName, { endsAtMs: number | undefined; storedAtMs: number }>({
    limit: USERS_LIMIT,
  })
  let waitingTokens = new Map<TokenName, StoredToken>()

  function rememberToken({ name, endsAt }: StoredToken, storedAtMs: number): void {
    knownTokens.put(name, { endsAtMs: endsAt?.getTime(), storedAtMs })
  }

  function isTokenStored({ name, endsAt }: StoredToken): boolean {
    const cached = knownTokens.find(name)
    return (
      cached !== undefined && cached.endsAtMs === endsAt?.getTime() && clock.now() - cached.storedAtMs < STORED_FOR_MS
    )
  }

  /** Stores waiting grants. Callers wait for the statement after the one in flight, which has their grant. */
  function saveSoon(): Promise<void> {
    saving ??= Promise.resolve().then(async () => {
      const grants = [...waiting.values()]
      waiting = new Map()
      saving = undefined
      const tokens = [...waitingTokens.values()]
      waitingTokens = new Map()
      const now = new Date(clock.now())
      await saveGrants(db, { grants, tokens }, now)
      for (const grant of grants) remember(grant, now.getTime())
      for (const token of tokens) rememberToken(token, now.getTime())
    })
    return saving
  }

  function remember({ userId, channel, account }: StoredGrant, storedAtMs: number): void {
    const own: Known = known.find(userId) ?? new Map()
    known.put(userId, own.set(channel, { account, storedAtMs }))
  }

  function isStored({ userId, channel, account }: StoredGrant): boolean {
    const cached = known.find(userId)?.get(channel)
    return cached?.account === account && clock.now() - cached.storedAtMs < STORED_FOR_MS
  }

  return {
    add: async (granted) => {
      const { userId, channel, account, token } = granted
      const grant = channel !== null && account !== null ? { userId, channel, account } : undefined
      const isKnown = !grant || isStored(grant)
      const used = token && { ...token, userId }
      if (isKnown && (!used || isTokenStored(used))) return
      if (grant && !isKnown) waiting.set(`${userId} ${channel}`, grant)
      if (used) waitingTokens.set(used.name, used)
      await saveSoon()
    },
    list: async (users) => {
      const found = new Map<UserId, Map<string, AccountId>>()
      const put = ({ userId, channel, account }: StoredGrant) =>
        found.set(userId, (found.get(userId) ?? new Map<string, AccountId>()).set(channel, account))
      for (const grant of await readGrants(db, { users })) put(grant)
      // Another process may have removed the row, for a loss before this grant.
      for (const userId of users)
        for (const [channel, { account }] of known.find(userId) ?? []) put({ userId, channel, account })
      return found
    },
    listUsers: async function* () {
      let after: UserId | null = null
      for (;;) {
        const users: UserId[] = await listGrantedUsers(db, { after, limit: PAGE_SIZE })
        if (users.length > 0) yield users
        after = users.at(-1) ?? null
        if (users.length < PAGE_SIZE) return
      }
    },
    forget: async (userId, channels) => {
      await removeGrants(db, { userId, channels })
      const own = known.find(userId)
      for (const channel of channels) own?.delete(channel)
      if (own?.size === 0) known.drop(userId)
    },
    findTokens: (asked) =>
      'endBy' in asked ? readDueTokens(db, { by: asked.endBy, limit: PAGE_SIZE }) : readTokens(db, { names: asked }),
    listTokens: async function* () {
      let after: string | null = null
      for (;;) {
        const tokens: StoredToken[] = await listTokensAfter(db, { after, limit: PAGE_SIZE })
        if (tokens.length > 0) yield tokens
        after = tokens.at(-1)?.name ?? null
        if (tokens.length < PAGE_SIZE) return
      }
    },
    extendToken: async (token) => void (await extendStoredToken(db, token)),
    // The provider closes whole connections: those of other sessions of the user reconnect.
    endTokens: async (tokens, ended) => {
      for (const userId of new Set(tokens.map((token) => token.userId)))
        if (!ended.has(userId)) await endConnections(userId)
      for (const { name } of tokens) {
        knownTokens.drop(name)
        await removeStoredToken(db, { name })
      }
    },
  }
}

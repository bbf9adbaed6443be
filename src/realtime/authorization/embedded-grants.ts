import type { AccountId, UserId } from '../../base/id.ts'
import type { TokenName } from '../../identity/caller/token-life.ts'
import type { PermittedToken } from '../embedded/application/state.ts'
import { SIGN_IN } from '../embedded/application/user-access.ts'
import type { RealtimeServer } from '../embedded/realtime-server.ts'
import type { AskedTokens, GrantedAccess, GrantedToken } from './granted-access.ts'

const PAGE_SIZE = 500

const toGranted = ({ name, user, endsAtMs }: PermittedToken): GrantedToken => ({
  name: name as TokenName,
  userId: user as UserId,
  endsAt: endsAtMs === null ? null : new Date(endsAtMs),
})

/** The grants at the embedded server: of this process's connections, passed to all processes before the answer. */
export function buildEmbeddedGrants(app: string, server: () => RealtimeServer | undefined): GrantedAccess {
  const tokens = () => server()?.tokensOf(app)
  const listTokens = () => [...(tokens()?.values() ?? [])]
  return {
    add: async ({ userId, channel, account, socketId, token }) => {
      await server()?.notePermission({
        ...{ app, socketId, user: userId, channel: channel ?? SIGN_IN },
        ...(account !== null && { owner: account }),
        ...(token && { token: { name: token.name, endsAtMs: token.endsAt?.getTime() ?? null } }),
      })
    },
    list: async (users) =>
      new Map(
        [...users].flatMap((userId) => {
          const channels = server()?.listPermissions({ app, user: userId })
          return channels ? [[userId, channels as ReadonlyMap<string, AccountId>] as const] : []
        }),
      ),
    listUsers: async function* () {
      const users = server()?.listUsers(app) ?? []
      if (users.length > 0) yield users as UserId[]
    },
    // A withdrawal ends the permission with the subscription.
    forget: async () => {},
    findTokens: async (asked: AskedTokens) => {
      if ('endBy' in asked) {
        const endByMs = asked.endBy.getTime()
        return listTokens()
          .filter(({ endsAtMs }) => endsAtMs !== null && endsAtMs <= endByMs)
          .map(toGranted)
      }
      const known = tokens()
      return asked.flatMap((name) => known?.get(name) ?? []).map(toGranted)
    },
    listTokens: async function* () {
      const tokens = listTokens().map(toGranted)
      for (let first = 0; first < tokens.length; first += PAGE_SIZE) yield tokens.slice(first, first + PAGE_SIZE)
    },
    extendToken: async ({ name, endsAt }) => server()?.extendToken({ app, name, endsAtMs: endsAt?.getTime() ?? null }),
    endTokens: async (tokens) => {
      for (const { name } of tokens) server()?.endToken({ app, name })
    },
  }
}

import type { AccountId, UserId } from '../id.ts'
import type { RealtimeServer } from './embedded/realtime-server.ts'
import type { GrantedAccess } from './granted-access.ts'

/**
 * The grants at the embedded server: each process knows those of the connections that it holds, whichever process granted
 * them, for as long as the connection lives. A grant is passed to all processes before it is answered.
 */
export function buildEmbeddedGrants(app: string, server: () => RealtimeServer | undefined): GrantedAccess {
  const list = (users: Iterable<UserId>) =>
    new Map(
      [...users].flatMap((userId) => {
        const channels = server()?.listPermissions({ app, user: userId })
        return channels ? [[userId, channels as ReadonlyMap<string, AccountId>] as const] : []
      }),
    )
  return {
    add: async ({ userId, channel, account, socketId }) => {
      await server()?.notePermission({ app, socketId, channel, user: userId, owner: account })
    },
    list: async (users) => list(users),
    listUsers: async function* () {
      const users = server()?.listUsers(app) ?? []
      if (users.length > 0) yield users as UserId[]
    },
    // A withdrawal ends the permission with the subscription.
    forget: async () => {},
  }
}

import { USER_PREFIX } from '../frame/channel-name.ts'
import { closeConnection, noteUser } from './connection.ts'
import { noteTermination, noteWithdrawal, wasTerminated, wasWithdrawn } from './recent-revocations.ts'
import type { Application, ChannelAccess, Connection, Permission, PermittedToken, RealtimeContext } from './state.ts'
import { unsubscribe, withdraw } from './subscription.ts'

/** Placeholder for a channel in a permission to sign in: no channel has this name. */
export const SIGN_IN = ''

/** Maximum number of authorized channels of one connection, each stored: a page with more reconnects. */
const PERMISSIONS_LIMIT = 1_000

/** The users that connections of this process were permitted a channel for. */
export function listUsersHere({ byUser }: Application): string[] {
  const isPermitted = ([user, connections]: [string, Set<Connection>]) =>
    [...connections].some(({ permitted }) => [...permitted.values()].some((item) => item.user === user))
  return [...byUser].filter(isPermitted).map(([user]) => user)
}

/** The channels permitted for a user on this process, and what each belongs to; undefined without a connection. */
export function listPermissionsHere({ byUser }: Application, user: string): ReadonlyMap<string, string> | undefined {
  const connections = byUser.get(user)
  if (!connections) return undefined
  const channels = new Map<string, string>()
  for (const { permitted } of connections)
    for (const [channel, permission] of permitted) if (permission.user === user) channels.set(channel, permission.owner)
  return channels
}

/** Closes the connections of a user in this process, and returns their number. */
export function terminateHere(context: RealtimeContext, application: Application, user: string): number {
  noteTermination(application, user, context.clock.now())
  const connections = [...(application.byUser.get(user) ?? [])]
  for (const connection of connections) closeConnection(connection, 'terminated')
  return connections.length
}

/** Withdraws the access of a user to a channel in this process, and returns the number of subscriptions that ended. */
export function withdrawHere(context: RealtimeContext, application: Application, access: ChannelAccess): number {
  noteWithdrawal(application, access, context.clock.now())
  let ended = 0
  for (const connection of application.byUser.get(access.user) ?? [])
    if (withdraw(context, connection, access.channel)) ended += 1
  return ended
}

/** Records for whom a socket was authorized, and permits it again, except right after a withdrawal. */
export function permitHere(
  context: RealtimeContext,
  application: Application,
  { socketId, channel, user, owner, token }: Permission,
): void {
  const connection = application.connections.get(socketId)
  if (!connection) return
  if (wasTerminated(connection, user)) return void closeConnection(connection, 'terminated')
  noteUser(connection, user)
  if (token) holdToken(connection, channel, { ...token, user })
  if (channel === SIGN_IN) {
    connection.withdrawn.delete(channel)
    return void observePermission(context, application, { user, token })
  }
  if (wasWithdrawn(application, user, channel)) return void connection.withdrawn.add(channel)
  connection.withdrawn.delete(channel)
  if (owner === undefined) return
  const isNew = !connection.permitted.has(channel)
  if (isNew && connection.permitted.size >= PERMISSIONS_LIMIT)
    return void closeConnection(connection, 'many-authorizations')
  connection.permitted.set(channel, { user, owner })
  observePermission(context, application, { user, token })
}

function observePermission(
  context: RealtimeContext,
  { app }: Application,
  { user, token }: Pick<Permission, 'user' | 'token'>,
): void {
  context.observe({ app: app.id, kind: 'permitted', user, ...(token && { token: token.name }) })
}

/** Records the token of a permission. A session is valid as long as the latest of its JWTs. */
function holdToken(connection: Connection, channel: string, { name, user, endsAtMs }: PermittedToken): void {
  const { tokens } = connection.application
  const entry = tokens.get(name) ?? { name, user, endsAtMs, connections: new Set() }
  if (endsAtMs === null || (entry.endsAtMs !== null && endsAtMs > entry.endsAtMs)) entry.endsAtMs = endsAtMs
  tokens.set(name, entry)
  entry.connections.add(connection)
  connection.tokens.set(channel, name)
}

/** Ends the permissions of a token on this process: its subscriptions and sign-ins, not the connections. */
export function endTokenHere(context: RealtimeContext, { tokens }: Application, name: string): void {
  const entry = tokens.get(name)
  if (!entry) return
  tokens.delete(name)
  for (const connection of entry.connections) {
    const channels = [...connection.tokens].filter(([, token]) => token === name).map(([channel]) => channel)
    for (const channel of channels) withdraw(context, connection, channel)
    if (!channels.includes(SIGN_IN) || connection.userId !== entry.user) continue
    connection.userId = undefined
    unsubscribe(context, connection, `${USER_PREFIX}${entry.user}`)
  }
}

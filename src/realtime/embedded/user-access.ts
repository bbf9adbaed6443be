import type { Application, RealtimeWorld } from './application.ts'
import { closeConnection, noteUser } from './connection.ts'
import { withdraw } from './subscription.ts'

/** Whose access to what. */
export interface ChannelAccess {
  channel: string
  user: string
}

/** Closes the connections of a user in this process, and returns their number. */
export function terminateHere(application: Application, user: string): number {
  const connections = [...(application.byUser.get(user) ?? [])]
  for (const connection of connections) closeConnection(connection, 'terminated')
  return connections.length
}

/** Withdraws the access of a user to a channel in this process, and returns the number of subscriptions that ended. */
export function withdrawHere(world: RealtimeWorld, application: Application, { channel, user }: ChannelAccess): number {
  let ended = 0
  for (const connection of application.byUser.get(user) ?? []) {
    if (withdraw(world, connection, channel)) ended += 1
  }
  return ended
}

/** Notes for whom a subscription of a socket was authorized, and permits it again after a withdrawal. */
export function permitHere(
  application: Application,
  { socketId, channel, user }: ChannelAccess & { socketId: string },
): void {
  const connection = application.connections.get(socketId)
  if (!connection) return
  noteUser(connection, user)
  connection.withdrawn.delete(channel)
}

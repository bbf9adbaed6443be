import type { Application, RealtimeWorld } from './application.ts'
import { closeConnection, noteUser } from './connection.ts'
import { noteTermination, noteWithdrawal, wasTerminated, wasWithdrawn } from './recent-endings.ts'
import { withdraw } from './subscription.ts'

/** Whose access to what. */
export interface ChannelAccess {
  channel: string
  user: string
}

/** Closes the connections of a user in this process, and returns their number. */
export function terminateHere(world: RealtimeWorld, application: Application, user: string): number {
  noteTermination(application, user, world.clock.now())
  const connections = [...(application.byUser.get(user) ?? [])]
  for (const connection of connections) closeConnection(connection, 'terminated')
  return connections.length
}

/** Withdraws the access of a user to a channel in this process, and returns the number of subscriptions that ended. */
export function withdrawHere(world: RealtimeWorld, application: Application, access: ChannelAccess): number {
  noteWithdrawal(application, access, world.clock.now())
  let ended = 0
  for (const connection of application.byUser.get(access.user) ?? [])
    if (withdraw(world, connection, access.channel)) ended += 1
  return ended
}

/**
 * Notes for whom a subscription of a socket was authorized, and permits it again after a withdrawal, except right after it: the
 * permission may have been decided before.
 */
export function permitHere(
  application: Application,
  { socketId, channel, user }: ChannelAccess & { socketId: string },
): void {
  const connection = application.connections.get(socketId)
  if (!connection) return
  if (wasTerminated(connection, user)) return void closeConnection(connection, 'terminated')
  noteUser(connection, user)
  if (wasWithdrawn(application, user, channel)) connection.withdrawn.add(channel)
  else connection.withdrawn.delete(channel)
}

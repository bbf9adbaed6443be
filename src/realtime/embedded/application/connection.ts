import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import type { Budget } from '../frame/budget.ts'
import type { ChannelName } from '../frame/channel-name.ts'
import { CLOSE_REASONS, type CloseName } from '../frame/close-reason.ts'
import { encodeTextFrame } from '../frame/server-frame.ts'
import type { Application, RealtimeWorld } from './application.ts'

/** A token of an authorization; opaque here. */
export interface PermittedToken {
  name: string
  user: string
  /** When it has to be looked at; null for one that does not end by itself. */
  endsAtMs: number | null
}

/** A token with the connections on which something was permitted with it. */
export interface HeldToken extends PermittedToken {
  connections: Set<Connection>
}

/** An open connection. */
export interface Connection {
  application: Application
  socketId: string
  /** The group of its address, for the limits. */
  address: string
  webSocket: WebSocket
  /** The connection below the WebSocket. */
  socket: Duplex
  /** Its subscriptions by channel. */
  channels: Map<string, ChannelName>
  /** The user it signed in as. */
  userId?: string | undefined
  /** Every user it is known to act for. */
  users: Set<string>
  /** For whom channels were authorized, and what the channel belongs to, as the authorization says. */
  permitted: Map<string, { user: string; owner: string }>
  /** The name of the token with which each channel, or the sign-in (`SIGN_IN`), was authorized. */
  tokens: Map<string, string>
  /** Channels whose access was withdrawn. The signature of a subscription stays valid, so they are refused here. */
  withdrawn: Set<string>
  /** Ends its subscriptions. */
  release: () => void
  isAuthorized: boolean
  /** Whether a close has begun: nothing is sent or read any more. */
  isClosing: boolean
  openedAtMs: number
  lastSeenAtMs: number
  pingedAtMs?: number | undefined
  messages: Budget
  clientEvents: Budget
}

/**
 * Writes a frame, and says whether it was. The frame is written to the socket itself, encoded once for all its receivers. The
 * WebSocket library writes its own frames whole within one tick, so that none is split. A client for which too much waits is
 * cut off: it would hold the memory of every later message.
 */
export function sendFrame(world: RealtimeWorld, connection: Connection, frame: Buffer): boolean {
  const { socket } = connection
  if (connection.isClosing || !socket.writable) return false
  if (socket.writableLength + frame.length > world.limits.waitingBytes) {
    world.counts.cut += 1
    connection.isClosing = true
    connection.webSocket.terminate()
    return false
  }
  socket.write(frame)
  return true
}

/** Sends one text. */
export function sendText(world: RealtimeWorld, connection: Connection, text: string): boolean {
  return sendFrame(world, connection, encodeTextFrame(text))
}

/** Closes a connection with its code. The WebSocket library ends it when the client does not answer. */
export function closeConnection(connection: Connection, name: CloseName): void {
  if (connection.isClosing) return
  connection.isClosing = true
  const { code, reason } = CLOSE_REASONS[name]
  connection.webSocket.close(code, reason)
  // Not before what runs now has ended, such as a fan-out; and not when the client answers, which it may never do.
  setImmediate(connection.release)
}

/** Notes that a connection acts for a user, so that ending the user's access finds it. */
export function noteUser(connection: Connection, userId: string): void {
  if (connection.users.has(userId)) return
  connection.users.add(userId)
  const { byUser } = connection.application
  const known = byUser.get(userId)
  if (known) known.add(connection)
  else byUser.set(userId, new Set([connection]))
}

/** Removes a connection from the indexes of users and tokens. */
export function forgetUsers(connection: Connection): void {
  const { byUser, tokens } = connection.application
  for (const name of connection.tokens.values()) {
    const held = tokens.get(name)
    held?.connections.delete(connection)
    if (held?.connections.size === 0) tokens.delete(name)
  }
  for (const userId of connection.users) {
    const known = byUser.get(userId)
    known?.delete(connection)
    if (known?.size === 0) byUser.delete(userId)
  }
  connection.users.clear()
}

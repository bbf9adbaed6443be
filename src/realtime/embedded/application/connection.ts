import { CLOSE_REASONS, type CloseName } from '../frame/close-reason.ts'
import { encodeTextFrame } from '../frame/server-frame.ts'
import type { Connection, RealtimeContext } from './state.ts'

/**
 * Writes a frame, and returns whether it was written. The frame is written to the socket directly, encoded once for all
 * receivers. The WebSocket library writes its own frames whole within one tick, so that none is split. A client with
 * too much buffered data is disconnected: it would keep every later message in memory.
 */
export function sendFrame(context: RealtimeContext, connection: Connection, frame: Buffer): boolean {
  const { socket } = connection
  if (connection.isClosing || !socket.writable) return false
  if (socket.writableLength + frame.length > context.limits.waitingBytes) {
    context.counts.cut += 1
    connection.isClosing = true
    connection.webSocket.terminate()
    return false
  }
  socket.write(frame)
  return true
}

/** Sends one text. */
export function sendText(context: RealtimeContext, connection: Connection, text: string): boolean {
  return sendFrame(context, connection, encodeTextFrame(text))
}

/** Closes a connection with its code. The WebSocket library ends it when the client does not answer. */
export function closeConnection(connection: Connection, name: CloseName): void {
  if (connection.isClosing) return
  connection.isClosing = true
  const { code, reason } = CLOSE_REASONS[name]
  connection.webSocket.close(code, reason)
  // After the running work, such as a fan-out; and not at the answer of the client, which may never come.
  setImmediate(connection.release)
}

/** Records that a connection acts for a user, so that a revocation of the user's access finds it. */
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
    const entry = tokens.get(name)
    entry?.connections.delete(connection)
    if (entry?.connections.size === 0) tokens.delete(name)
  }
  for (const userId of connection.users) {
    const known = byUser.get(userId)
    known?.delete(connection)
    if (known?.size === 0) byUser.delete(userId)
  }
  connection.users.clear()
}

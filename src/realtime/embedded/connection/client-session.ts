import { closeConnection, noteUser, sendText } from '../application/connection.ts'
import { deliver } from '../application/fan-out.ts'
import { wasTerminated } from '../application/recent-revocations.ts'
import type { Connection, RealtimeContext } from '../application/state.ts'
import { subscribe, unsubscribe } from '../application/subscription.ts'
import { SIGN_IN } from '../application/user-access.ts'
import { spend } from '../frame/budget.ts'
import { isUserId } from '../frame/channel-name.ts'
import { type ClientFrame, parseClientFrame, readUserData } from '../frame/client-frame.ts'
import { CLIENT_EVENT_RATE_CODE, UNAUTHORIZED_CODE } from '../frame/close-reason.ts'
import { PONG_TEXT, writeError, writeSignedIn } from '../frame/server-frame.ts'
import { buildSigninText, classifyToken } from '../frame/signature.ts'

/** Records a sign of life of a client, and counts it: false when the connection is closed or has sent too much. */
export function admit(context: RealtimeContext, connection: Connection): boolean {
  if (connection.isClosing) return false
  const nowMs = context.clock.now()
  connection.lastSeenAtMs = nowMs
  const { messagesPerSecond: perSecond, messageBurst: burst } = context.limits
  if (spend(connection.messages, { perSecond, burst }, nowMs)) return true
  closeConnection(connection, 'frame-flood')
  return false
}

/** Serves one message of a client. */
export function serveMessage(context: RealtimeContext, connection: Connection, text: string): void {
  if (!admit(context, connection)) return
  const frame = parseClientFrame(text)
  switch (frame.kind) {
    case 'ping':
      return void sendText(context, connection, PONG_TEXT)
    case 'pong':
      return
    case 'subscribe':
      return void subscribe(context, connection, frame)
    case 'unsubscribe':
      return void unsubscribe(context, connection, frame.channel)
    case 'signin':
      return void signIn(context, connection, frame)
    case 'client-event':
      return void passOn(context, connection, frame)
    case 'fault':
      return void sendText(context, connection, writeError(frame.message))
  }
}

function signIn(
  context: RealtimeContext,
  connection: Connection,
  frame: Extract<ClientFrame, { kind: 'signin' }>,
): void {
  const refuse = (message: string) => void sendText(context, connection, writeError(message, UNAUTHORIZED_CODE))
  if (Buffer.byteLength(frame.userData) > context.limits.memberBytes) return void refuse('The user data is too large')
  const text = buildSigninText(connection.socketId, frame.userData)
  if (classifyToken(connection.application.app, frame.auth, text) !== 'valid')
    return void refuse('Invalid signature in user auth data')
  const user = readUserData(frame.userData)
  if (!user || !isUserId(user.id)) return void refuse('The user data names no valid user')
  if (connection.userId !== undefined && connection.userId !== user.id)
    return void refuse('The connection is signed in as another user')
  // The signature of a sign-in stays valid, also after its session has ended.
  if (connection.withdrawn.has(SIGN_IN)) return void refuse('The session of this sign-in has ended')
  if (wasTerminated(connection, user.id)) return void closeConnection(connection, 'terminated')
  connection.userId = user.id
  connection.isAuthorized = true
  noteUser(connection, user.id)
  sendText(context, connection, writeSignedIn(frame.userData))
}

/** Passes a client event to the other subscribers, in this process and the others. */
function passOn(
  context: RealtimeContext,
  connection: Connection,
  { channel: name, event, data }: Extract<ClientFrame, { kind: 'client-event' }>,
): void {
  const refuse = (message: string, code: number | null = null) =>
    void sendText(context, connection, writeError(message, code))
  const channel = connection.channels.get(name)
  if (!channel) return void refuse('Client event rejected: the connection is not subscribed to the channel')
  if (channel.kind !== 'private' && channel.kind !== 'presence')
    return void refuse('Client event rejected: only private and presence channels take client events')
  if (Buffer.byteLength(data) > context.limits.eventBytes)
    return void refuse('Client event rejected: the data is too large')
  const perSecond = context.limits.clientEventsPerSecond
  if (!spend(connection.clientEvents, { perSecond, burst: perSecond }, context.clock.now()))
    return void refuse(`Client event rejected: at most ${perSecond} a second`, CLIENT_EVENT_RATE_CODE)
  const { app, registry } = connection.application
  const userId = registry.subscribersOf(name)?.get(connection)
  const published = { event, channels: [name], data, socketId: connection.socketId, userId, source: 'client' } as const
  deliver(context, connection.application, published)
  context.relay
    .send({ kind: 'publish', app: app.id, events: [published] })
    .catch((error: unknown) =>
      context.logger.warn({ err: error }, 'realtime client event lost: see docs/operations.md, realtime processes'),
    )
}

import { createHmac } from 'node:crypto'
import type { Server } from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'

/** The connections of clients to a simulated provider. */
export interface SimulatedLine {
  /** Sends messages to who has joined their channels. */
  broadcast(messages: readonly { channel: string; name: string; data: string }[]): void
  /** Closes the connections of a user who signed in, as the provider does. */
  terminate(user: string): void
  /** Closes all connections with this code. */
  closeAll(code: number): void
  /** While true, subscriptions are not answered. */
  isMute: boolean
  /** How many connections have joined a channel. */
  countJoined(channel: string): number
}

interface Client {
  socket: WebSocket
  id: string
  channels: Set<string>
  user: string | undefined
}

/** Accepts WebSockets of the Pusher protocol 7 at `/app/<key>`: private channels and the sign-in, with checked signatures. */
export function acceptSockets(server: Server, app: { key: string; secret: string }): SimulatedLine {
  const clients = new Set<Client>()
  let count = 0
  const sign = (text: string) => `${app.key}:${createHmac('sha256', app.secret).update(text).digest('hex')}`
  const line: SimulatedLine = {
    isMute: false,
    broadcast: (messages) => {
      for (const { channel, name, data } of messages)
        for (const client of clients)
          if (client.channels.has(channel)) client.socket.send(JSON.stringify({ event: name, channel, data }))
    },
    terminate: (user) => {
      for (const client of clients) if (client.user === user) client.socket.close(4009, 'terminated')
    },
    closeAll: (code) => {
      for (const { socket } of clients) socket.close(code)
    },
    countJoined: (channel) => [...clients].filter((client) => client.channels.has(channel)).length,
  }

  function take(client: Client, { event, data }: { event: string; data: Record<string, string> }): unknown {
    const send = (name: string, answer: object, channel?: string) =>
      client.socket.send(JSON.stringify({ event: name, ...(channel && { channel }), data: JSON.stringify(answer) }))
    const { channel = '', auth = '', user_data: userData = '' } = data
    if (event === 'pusher:ping') return send('pusher:pong', {})
    if (event === 'pusher:unsubscribe') return client.channels.delete(channel)
    if (event === 'pusher:signin') {
      if (auth !== sign(`${client.id}::user::${userData}`)) return send('pusher:error', { code: null, message: 'no' })
      client.user = JSON.parse(userData).id
      return send('pusher:signin_success', { user_data: userData })
    }
    if (event !== 'pusher:subscribe' || line.isMute) return
    if (channel.startsWith('private-') && auth !== sign(`${client.id}:${channel}`))
      return send('pusher:error', { code: null, message: 'Invalid signature' })
    client.channels.add(channel)
    send('pusher_internal:subscription_succeeded', {}, channel)
  }

  new WebSocketServer({ server }).on('connection', (socket, request) => {
    if (!request.url?.startsWith(`/app/${app.key}?`)) return socket.close(4001, 'no such application')
    count += 1
    const client: Client = { socket, id: `${count}.${count * 7}`, channels: new Set(), user: undefined }
    clients.add(client)
    socket.on('close', () => clients.delete(client))
    socket.on('message', (text) => take(client, JSON.parse(String(text))))
    const hello = { socket_id: client.id, activity_timeout: 120 }
    socket.send(JSON.stringify({ event: 'pusher:connection_established', data: JSON.stringify(hello) }))
  })
  return line
}

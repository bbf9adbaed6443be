import PusherModule from 'pusher-js'
import type { ChannelName, ChannelState, EventName, PresenceName, RealtimeMessage } from './channel.ts'
import { buildChannelSubscription, type ChannelSubscription, type LibraryChannel } from './channel-subscription.ts'
import type { ClientEventLine } from './client-events.ts'
import { isDebugWanted, redact } from './debug.ts'
import { decideWait, isFinalClose, TERMINATED } from './nudge.ts'
import { buildMemberList, type Member, type MemberList } from './presence.ts'
import type { Position } from './resume-merge.ts'
import { buildService, type ConnectionSettings, type Service, type TokenProvider } from './service-call.ts'

export type {
  ApiEventName,
  ChannelName,
  ChannelState,
  EventName,
  PresenceName,
  RealtimeMessage,
} from './channel.ts'
export { accountChannel, accountPresence, contractChannel, contractPresence } from './channel.ts'
export type {
  ClientEventHandler,
  ClientEventLine,
  ClientEventName,
  ClientEventSender,
  ClientEvents,
} from './client-events.ts'
export { defineClientEvents } from './client-events.ts'
export { ACCOUNT_EVENT_NAMES } from './event-names.generated.ts'
export type { Member } from './presence.ts'
export type { TokenProvider } from './service-call.ts'

/** Options of the connection to Signalbox. */
export interface RealtimeOptions {
  /** Where Signalbox is: `https://id.example.com`. */
  service: string
  /** Returns the access token of the user; called for each authorization. */
  token: TokenProvider
  fetch?: typeof fetch
  /** Whether to log verbosely. Default: what the page asks for (`realtime_debug`). */
  debug?: boolean
  /** Takes the lines of the debug log. Default: the console. */
  log?: (line: string) => void
}

/** What every joined channel has. */
export interface Joined extends ClientEventLine {
  read(): ChannelState
  /** Calls `listener` when the state changes; returns the function that ends this. */
  onState(listener: () => void): () => void
  /** Leaves; the channel is unsubscribed when all who joined it have left. */
  leave(): void
}

/** A joined channel. */
export interface JoinedChannel extends Joined {
  name: ChannelName
  /** Calls `listener` when messages were missed: the displayed data has to be read again. Returns the function that ends this. */
  onMissed(listener: () => void): () => void
  /** Calls `handler` with each message of this event type, once; returns the function that ends this. */
  on<Name extends EventName>(event: Name, handler: (message: RealtimeMessage<Name>) => void): () => void
}

/** A joined presence channel. */
export interface JoinedPresence extends Joined {
  name: PresenceName
  /** Who is present, this user included, the longest first; the last known ones while the channel is not live. */
  members(): readonly Member[]
  /** Calls `listener` when the members change; returns the function that ends this. */
  onMembers(listener: () => void): () => void
}

/** One connection to the realtime server, shared by all channels. */
export interface Realtime {
  join(channel: ChannelName): JoinedChannel
  /** Joins a presence channel: the user is shown to its other members, who have access to the account or the contract too. */
  joinPresence(channel: PresenceName): JoinedPresence
  close(): void
}

/** The client library, as far as it is used here. */
interface Library {
  connection: { state: string; bind(event: string, callback: (data: never) => void): unknown }
  subscribe(channel: string): LibraryChannel
  unsubscribe(channel: string): void
  connect(): void
  disconnect(): void
  signin(): void
}

type LibraryClass = { new (key: string, options: object): Library; log?: (line: unknown) => void }

// The module is CommonJS: its types and Node disagree over where the class is.
const Pusher = ((PusherModule as unknown as { default?: LibraryClass }).default ??
  PusherModule) as unknown as LibraryClass

/** Connects to the realtime server that the service names, at the first channel that is joined. */
export function createRealtime(options: RealtimeOptions): Realtime {
  const service = buildService({ ...options, fetch: options.fetch ?? globalThis.fetch.bind(globalThis) })
  if (options.debug ?? isDebugWanted()) {
    // biome-ignore lint/suspicious/noConsole: what a user asks for by the debug switch
    const log = options.log ?? ((line: string) => console.debug(line))
    Pusher.log = (line) => log(redact(String(line)))
  }
  const joined = new Map<string, OpenChannel>()
  const line = buildConnection({ service, list: () => [...joined.values()].map((item) => item.subscription) })

  /** Joins the channel, which is opened by the first who joins it. */
  function join(name: ChannelName | PresenceName): { channel: OpenChannel; shared: Joined } {
    let channel = joined.get(name)
    if (channel?.subscription.read().kind === 'denied' && channel.users === 0) channel = undefined
    if (!channel) {
      channel = openChannel(service, name)
      joined.set(name, channel)
      line.add(channel.subscription)
    }
    const { subscription } = channel
    channel.users += 1
    let hasLeft = false
    const shared: Joined = {
      read: subscription.read,
      onState: subscription.onState,
      onClient: ({ checks }, event, handler) =>
        subscription.onClient(event, handler as (data: unknown) => void, (data) => checks[event]?.(data) ?? true),
      send: (_events, event, data) => subscription.send(event, data),
      leave: () => {
        const own = joined.get(name)
        if (hasLeft || own?.subscription !== subscription) return
        hasLeft = true
        own.users -= 1
        if (own.users > 0) return
        joined.delete(name)
        line.remove(subscription)
      },
    }
    return { channel, shared }
  }

  return {
    join: (name) => {
      const { channel, shared } = join(name)
      const { subscription } = channel
      return {
        ...{ ...shared, name, onMissed: subscription.onMissed },
        on: (event, handler) => subscription.on(event, handler as (message: RealtimeMessage) => void),
      }
    },
    joinPresence: (name) => {
      const { channel, shared } = join(name)
      return { ...shared, name, members: channel.members.read, onMembers: channel.members.onChange }
    },
    close: () => {
      for (const { subscription } of joined.values()) subscription.end()
      joined.clear()
      line.close()
    },
  }
}

/** A channel with those who joined it; the members stay empty but for a presence channel. */
interface OpenChannel {
  subscription: ChannelSubscription
  members: MemberList
  users: number
}

function openChannel(service: Service, channel: ChannelName | PresenceName): OpenChannel {
  const members = buildMemberList()
  const parts = channel.startsWith('presence-')
    ? { follow: members.take }
    : { ask: (position: Position) => service.resume({ channel, ...position }) }
  const subscription = buildChannelSubscription(channel, parts)
  subscription.onState(() => {
    if (subscription.read().kind === 'denied') members.clear()
  })
  return { subscription, members, users: 0 }
}

function isSame(settings: ConnectionSettings, other: ConnectionSettings | undefined): boolean {
  return JSON.stringify(settings) === JSON.stringify(other)
}

/** The connection, and what keeps it. */
function buildConnection({ service, list }: { service: Service; list: () => ChannelSubscription[] }) {
  let library: Library | undefined
  let used: ConnectionSettings | undefined
  let isOpening = false
  let isClosed = false
  let tries = 0
  let closeCode: number | null = null
  let isNudging = false
  let timer: ReturnType<typeof setTimeout> | undefined

  const noteAll = (state: 'connected' | 'connecting' | 'unavailable') => {
    for (const channel of list()) channel.noteConnection(state)
  }

  function later(work: () => void): void {
    clearTimeout(timer)
    timer = setTimeout(work, decideWait(tries, Math.random()))
    ;(timer as { unref?: () => void }).unref?.()
    tries += 1
  }

  /** Connects with the settings of the service; with those that were used already it waits until the service has others. */
  async function open(): Promise<void> {
    if (isOpening || isClosed) return
    isOpening = true
    const settings = await service.readSettings()
    isOpening = false
    if (isClosed) return
    if (settings.kind !== 'answer') {
      noteAll('unavailable')
      return later(() => void open())
    }
    if (library && isSame(settings.body, used)) return later(() => void open())
    endConnection()
    used = settings.body
    closeCode = null
    library = connect(settings.body)
    for (const channel of list()) channel.attach(library.subscribe(channel.name))
  }

  function connect(settings: ConnectionSettings): Library {
    const made = new Pusher(settings.key, {
      cluster: settings.cluster,
      wsHost: settings.ws_host,
      wsPort: settings.ws_port,
      wssPort: settings.ws_port,
      ...(settings.ws_path !== '' && { wsPath: settings.ws_path }),
      forceTLS: settings.force_tls,
      // Without these the library tries a third party as well.
      enabledTransports: ['ws', 'wss'],
      ...buildProofs(service, list),
    })
    made.connection.bind('state_change', (change: { current: string }) => follow(change.current))
    made.connection.bind('error', (error: { error?: { data?: { code?: number } } } | undefined) => {
      closeCode = error?.error?.data?.code ?? closeCode
    })
    made.signin()
    return made
  }

  function follow(state: string): void {
    if (isNudging) return
    if (state === 'connected') {
      tries = 0
      closeCode = null
      clearTimeout(timer)
      noteAll('connected')
    } else if (state === 'connecting') {
      noteAll('connecting')
      later(nudge)
    } else {
      noteAll('unavailable')
      const isGone = state === 'disconnected' || state === 'failed'
      if (isClosed || state === 'initialized') return
      // The application may have got other keys since the page was loaded.
      later(isGone && isFinalClose(closeCode) ? () => void open() : nudge)
    }
  }

  /** The library waits out its own slots after an attempt that was refused. */
  function nudge(): void {
    if (isClosed || library?.connection.state === 'connected') return
    if (closeCode === TERMINATED) closeCode = null
    endConnection()
    library?.connect()
  }

  function endConnection(): void {
    isNudging = true
    library?.disconnect()
    isNudging = false
  }

  return {
    add: (subscription: ChannelSubscription) => {
      if (library) subscription.attach(library.subscribe(subscription.name))
      else void open()
    },
    remove: (subscription: ChannelSubscription) => {
      subscription.end()
      library?.unsubscribe(subscription.name)
    },
    close: () => {
      isClosed = true
      clearTimeout(timer)
      library?.disconnect()
    },
  }
}

type Answer<Body> = (error: Error | null, data: Body | null) => void

/** Options of the library by which the service proves channels and the user; the page of a channel hears of a refusal. */
function buildProofs(service: Service, list: () => readonly ChannelSubscription[]) {
  const authorize = (
    { socketId, channelName: channel }: ChannelRequest,
    answer: Answer<{ auth: string; channel_data?: string }>,
  ): void => {
    void service.authorize({ socketId, channel }).then((result) => {
      const subscription = list().find((item) => item.name === channel)
      if (result.kind === 'answer') {
        subscription?.noteAuthorized(result.body.position)
        const { auth, channel_data } = result.body
        return answer(null, { auth, ...(channel_data !== undefined && { channel_data }) })
      }
      if (result.kind === 'refused') subscription?.noteRefusal(result.reason)
      answer(new Error(result.reason), null)
    })
  }
  const authenticate = (request: { socketId: string }, answer: Answer<{ auth: string; user_data: string }>): void => {
    void service.authenticate(request).then((result) => {
      if (result.kind === 'answer') answer(null, result.body)
      else answer(new Error(result.reason), null)
    })
  }
  return { channelAuthorization: { customHandler: authorize }, userAuthentication: { customHandler: authenticate } }
}

interface ChannelRequest {
  socketId: string
  channelName: string
}

import PusherModule from 'pusher-js'
import type { ChannelSubscription, LibraryChannel } from './channel-subscription.ts'
import { redact } from './debug.ts'
import { decideWait, isFinalClose, TERMINATED } from './nudge.ts'
import type { ConnectionSettings, Service } from './service-call.ts'

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

/** Passes the lines of the library's log on, without secrets and payloads. */
export function logLibrary(log: (line: string) => void): void {
  Pusher.log = (line) => log(redact(String(line)))
}

function isSame(settings: ConnectionSettings, other: ConnectionSettings | undefined): boolean {
  return JSON.stringify(settings) === JSON.stringify(other)
}

/** The connection, and what keeps it. */
export function buildConnection({ service, list }: { service: Service; list: () => ChannelSubscription[] }) {
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

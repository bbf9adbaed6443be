import type { ChannelName, ChannelState, EventName, PresenceName, RealtimeMessage } from './channel.ts'
import { type AskReplay, buildChannelResume, type ChannelResume } from './channel-resume.ts'
import { buildClientEventHandlers, type ClientEventHandlers } from './client-events.ts'

/** A subscribed channel of the client library, as far as it is used here. */
export interface LibraryChannel {
  bind(event: string, callback: (data: unknown, metadata?: { user_id?: string }) => void): unknown
  bind_global(callback: (event: string, data: unknown) => void): unknown
  unbind_all(): unknown
  subscribe(): void
  disconnect(): void
  trigger(event: string, data: unknown): boolean
  subscribed: boolean
}

/** How long a subscription may stay unanswered while there is a connection. */
export const SUBSCRIBE_LIMIT_MS = 10_000

/** How long a subscription waits after the service was not available. */
const RETRY_MS = 5_000

/** The wait after a refusal: access may return, by a new token or a membership. It doubles with each refusal up to the limit. */
export const DENIED_RETRY_MS = 15_000
const DENIED_RETRY_LIMIT_MS = 300_000

type Handler = (message: RealtimeMessage) => void

/** One channel with its state, its listeners and its watchdog. */
export interface ChannelSubscription {
  name: ChannelName | PresenceName
  read(): ChannelState
  onState(listener: () => void): () => void
  /** Calls `listener` when messages were missed that cannot be had any more. */
  onMissed(listener: () => void): () => void
  on(event: EventName, handler: Handler): () => void
  onClient: ClientEventHandlers['on']
  /** Sends a client event; false while the channel is not live. */
  send(event: string, data: unknown): boolean
  /** The channel of a new connection of the library. */
  attach(channel: LibraryChannel): void
  /** The connection is up, on its way or lost. */
  noteConnection(connection: 'connected' | 'connecting' | 'unavailable'): void
  noteAuthorized: ChannelResume['noteAuthorized']
  /** The service refused, so the next error of the library is a refusal with this reason. */
  noteRefusal(reason: string): void
  end(): void
}

/** Parts of a subscription that not every channel has. */
export interface SubscriptionParts {
  /** Without it an interruption is never made up for. */
  ask?: AskReplay
  /** Receives the events of the library itself, such as of members. */
  follow?: (event: string, data: unknown) => void
}

/** Builds the subscription of one channel. */
export function buildChannelSubscription(
  name: ChannelName | PresenceName,
  { ask, follow }: SubscriptionParts = {},
): ChannelSubscription {
  const listeners = new Set<() => void>()
  const missedListeners = new Set<() => void>()
  const clientEvents = buildClientEventHandlers()
  const handlers = new Map<string, Set<Handler>>()
  let state: ChannelState = { kind: 'connecting' }
  let library: LibraryChannel | undefined
  let refusal: string | undefined
  let refusals = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  function become(next: ChannelState): void {
    if (JSON.stringify(next) === JSON.stringify(state)) return
    state = next
    for (const listener of [...listeners]) listener()
  }

  function wait(ms: number): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (!library || state.kind === 'live') return
      refusal = undefined
      // While a subscription is pending, the library ignores a second one.
      library.disconnect()
      library.subscribe()
      wait(state.kind === 'denied' ? decideDeniedWait(refusals) : SUBSCRIBE_LIMIT_MS)
    }, ms)
    ;(timer as { unref?: () => void }).unref?.()
  }

  function fail(error: unknown): void {
    // Of the service, or of a server that ends a subscription or has no room: all are refusals.
    const { status, error: text } = (error ?? {}) as { status?: unknown; error?: unknown }
    if (refusal !== undefined || status === 401 || status === 403 || status === 429) {
      resume.forget()
      become({ kind: 'denied', reason: refusal ?? (typeof text === 'string' ? text : 'refused by the server') })
      wait(decideDeniedWait(refusals))
      refusals += 1
    } else {
      resume.interrupt()
      become({ kind: 'unavailable' })
      wait(RETRY_MS)
    }
  }

  const resume = buildChannelResume({
    ask,
    deliver: (arrivals) => {
      for (const { event, data } of arrivals)
        for (const handler of [...(handlers.get(event) ?? [])]) handler(data as RealtimeMessage)
    },
    onLive: (isMissing) => {
      become({ kind: 'live' })
      if (isMissing) for (const listener of [...missedListeners]) listener()
    },
  })

  return {
    name,
    read: () => state,
    onState: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    onMissed: (listener) => {
      missedListeners.add(listener)
      return () => missedListeners.delete(listener)
    },
    on: (event, handler) => {
      const own = handlers.get(event) ?? new Set<Handler>()
      handlers.set(event, own.add(handler))
      return () => own.delete(handler)
    },
    onClient: clientEvents.on,
    send: (event, data) => state.kind === 'live' && library?.trigger(event, data) === true,
    attach: (channel) => {
      library = channel
      clientEvents.attach(channel)
      channel.bind('pusher:subscription_succeeded', () => {
        clearTimeout(timer)
        refusal = undefined
        refusals = 0
        resume.start()
      })
      channel.bind('pusher:subscription_error', fail)
      channel.bind_global((event, data) => {
        if (event.startsWith('pusher:')) follow?.(event, data)
        if (!event.startsWith('pusher') && !event.startsWith('client-')) resume.take({ event, data })
      })
      if (state.kind !== 'denied') wait(SUBSCRIBE_LIMIT_MS)
    },
    noteConnection: (connection) => {
      if (state.kind === 'denied') return
      if (connection === 'connected') {
        if (!library?.subscribed) become({ kind: 'connecting' })
        wait(SUBSCRIBE_LIMIT_MS)
      } else {
        clearTimeout(timer)
        resume.interrupt()
        become({ kind: connection })
      }
    },
    noteAuthorized: resume.noteAuthorized,
    noteRefusal: (reason) => {
      refusal = reason
    },
    end: () => {
      clearTimeout(timer)
      resume.interrupt()
      library?.unbind_all()
      listeners.clear()
      missedListeners.clear()
      clientEvents.end()
      handlers.clear()
    },
  }
}

/** The wait before a refused channel is asked for again, in milliseconds. `refusals`: how many came before. Pure. */
function decideDeniedWait(refusals: number): number {
  return Math.min(DENIED_RETRY_LIMIT_MS, DENIED_RETRY_MS * 2 ** Math.min(refusals, 10))
}

import type { ChannelName, ChannelState, EventName, RealtimeMessage } from './channel.ts'

/** A subscribed channel of the client library, as far as it is used here. */
export interface LibraryChannel {
  bind(event: string, callback: (data: unknown) => void): unknown
  bind_global(callback: (event: string, data: unknown) => void): unknown
  unbind_all(): unknown
  subscribe(): void
  disconnect(): void
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
  name: ChannelName
  read(): ChannelState
  onState(listener: () => void): () => void
  on(event: EventName, handler: Handler): () => void
  /** The channel of a new connection of the library. */
  attach(channel: LibraryChannel): void
  /** The connection is up, on its way or lost. */
  noteConnection(connection: 'connected' | 'connecting' | 'unavailable'): void
  /** The service refused, so the next error of the library is a refusal with this reason. */
  noteRefusal(reason: string): void
  end(): void
}

/** Builds the subscription of one channel. */
export function buildChannelSubscription(name: ChannelName): ChannelSubscription {
  const listeners = new Set<() => void>()
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
    // Of the service, or of a server that ends a subscription: both are refusals.
    const { status, error: text } = (error ?? {}) as { status?: unknown; error?: unknown }
    const isRefusal = refusal !== undefined || status === 401 || status === 403
    if (isRefusal) {
      become({ kind: 'denied', reason: refusal ?? (typeof text === 'string' ? text : 'refused by the server') })
      wait(decideDeniedWait(refusals))
      refusals += 1
    } else {
      become({ kind: 'unavailable' })
      wait(RETRY_MS)
    }
  }

  return {
    name,
    read: () => state,
    onState: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    on: (event, handler) => {
      const own = handlers.get(event) ?? new Set<Handler>()
      handlers.set(event, own.add(handler))
      return () => own.delete(handler)
    },
    attach: (channel) => {
      library = channel
      channel.bind('pusher:subscription_succeeded', () => {
        clearTimeout(timer)
        refusal = undefined
        refusals = 0
        become({ kind: 'live' })
      })
      channel.bind('pusher:subscription_error', fail)
      channel.bind_global((event, data) => {
        for (const handler of [...(handlers.get(event) ?? [])]) handler(data as RealtimeMessage)
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
        become({ kind: connection })
      }
    },
    noteRefusal: (reason) => {
      refusal = reason
    },
    end: () => {
      clearTimeout(timer)
      library?.unbind_all()
      listeners.clear()
      handlers.clear()
    },
  }
}

/** The wait before a refused channel is asked for again, in milliseconds. `refusals`: how many came before. Pure. */
function decideDeniedWait(refusals: number): number {
  return Math.min(DENIED_RETRY_LIMIT_MS, DENIED_RETRY_MS * 2 ** Math.min(refusals, 10))
}

/** The name of an event that pages of a channel send each other. */
export type ClientEventName = `client-${string}`

/** Says whether data of another page has the type of its event. */
type Check<Data> = (data: unknown) => data is Data

/**
 * The client events of a platform: the types of their data by name (`{ 'client-typing': { field: string } }`), and the checks
 * of what other pages send.
 */
export interface ClientEvents<Map extends object> {
  checks: { readonly [Name in keyof Map]?: Check<Map[Name]> }
}

/**
 * Declares client events, once for all channels. What fails its check is ignored: another page may have another version, and
 * every member of the account can send. Without a check the data is taken as it comes.
 */
export function defineClientEvents<Map extends object>(checks: ClientEvents<Map>['checks'] = {}): ClientEvents<Map> {
  return { checks }
}

/** Sender of a client event. */
export interface ClientEventSender {
  /** The id of the user, on a presence channel; checked by the server. */
  user?: string
}

/** Takes a client event. */
export type ClientEventHandler<Data> = (data: Data, sender: ClientEventSender) => void

/** The client events of a joined channel: to its other pages, not to this one, and not repeated after an interruption. */
export interface ClientEventLine {
  /** Calls `handler` with each event of other pages; returns the function that ends this. */
  onClient<Map extends object, Name extends keyof Map & ClientEventName>(
    events: ClientEvents<Map>,
    name: Name,
    handler: ClientEventHandler<Map[Name]>,
  ): () => void
  /** Sends an event; false while the channel is not live. The server refuses more than 10 a second. */
  send<Map extends object, Name extends keyof Map & ClientEventName>(
    events: ClientEvents<Map>,
    name: Name,
    data: Map[Name],
  ): boolean
}

/** The handlers of one channel's client events, bound to the channels that the library has for it. */
export interface ClientEventHandlers {
  on(name: string, handler: ClientEventHandler<unknown>, isValid: (data: unknown) => boolean): () => void
  /** Binds all names to the channel of a new connection. */
  attach(channel: BindableChannel): void
  end(): void
}

/** A channel of the client library, as far as it is used here. */
interface BindableChannel {
  bind(event: string, callback: (data: unknown, metadata?: { user_id?: string }) => void): unknown
}

/** Builds the handlers of a channel. */
export function buildClientEventHandlers(): ClientEventHandlers {
  const handlers = new Map<string, Set<(data: unknown, sender: ClientEventSender) => void>>()
  let attached: BindableChannel | undefined

  function bind(channel: BindableChannel, name: string): void {
    channel.bind(name, (data, metadata) => {
      const sender = metadata?.user_id === undefined ? {} : { user: metadata.user_id }
      for (const handler of [...(handlers.get(name) ?? [])]) handler(data, sender)
    })
  }

  return {
    on: (name, handler, isValid) => {
      const known = handlers.get(name)
      const own = known ?? new Set()
      handlers.set(name, own)
      if (!known && attached) bind(attached, name)
      const checked = (data: unknown, sender: ClientEventSender) => {
        if (isValid(data)) handler(data, sender)
      }
      own.add(checked)
      return () => own.delete(checked)
    },
    attach: (channel) => {
      attached = channel
      for (const name of handlers.keys()) bind(channel, name)
    },
    end: () => handlers.clear(),
  }
}

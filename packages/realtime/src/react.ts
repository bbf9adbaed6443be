import {
  createContext,
  createElement,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useRef,
  useState,
} from 'react'
import type { ChannelName, ChannelState, EventName, PresenceName, RealtimeMessage } from './channel.ts'
import type { ClientEventHandler, ClientEventName, ClientEvents } from './client-events.ts'
import type { Member } from './presence.ts'
import type { Joined, JoinedChannel, Realtime } from './realtime.ts'

const RealtimeContext = createContext<Realtime | undefined>(undefined)

/** Gives the components below the connection that `createRealtime` made. */
export function RealtimeProvider({ realtime, children }: { realtime: Realtime; children?: ReactNode }) {
  return createElement(RealtimeContext.Provider, { value: realtime }, children)
}

const CONNECTING: ChannelState = { kind: 'connecting' }

function useRealtime(): Realtime {
  const realtime = useContext(RealtimeContext)
  if (!realtime) throw new Error('the hooks of @signalbox/realtime need a RealtimeProvider above them')
  return realtime
}

/** Joins a channel for as long as the component is there, and returns its state. `null` joins none. */
export function useChannel(name: ChannelName | null): ChannelState {
  const realtime = useRealtime()
  const [state, setState] = useState(CONNECTING)
  useEffect(() => {
    setState(CONNECTING)
    if (name === null) return
    const channel = realtime.join(name)
    const show = () => setState(channel.read())
    const end = channel.onState(show)
    show()
    return () => {
      end()
      channel.leave()
    }
  }, [realtime, name])
  return state
}

const NOBODY: readonly Member[] = []

/**
 * Joins a presence channel for as long as the component is there: the user is shown to its other members. Returns the state,
 * and who is present since when, the longest first. `null` joins none.
 */
export function usePresence(name: PresenceName | null): { state: ChannelState; members: readonly Member[] } {
  const realtime = useRealtime()
  const [presence, setPresence] = useState({ state: CONNECTING, members: NOBODY })
  useEffect(() => {
    setPresence({ state: CONNECTING, members: NOBODY })
    if (name === null) return
    const channel = realtime.joinPresence(name)
    const show = () => setPresence({ state: channel.read(), members: channel.members() })
    const ends = [channel.onState(show), channel.onMembers(show)]
    show()
    return () => {
      for (const end of ends) end()
      channel.leave()
    }
  }, [realtime, name])
  return presence
}

/**
 * Calls `handler` with each client event of other pages on a channel, and returns the function that sends one to them: false
 * while the channel is not live. The latest `handler` is called; it needs no memo.
 */
export function useClientEvent<Map extends object, Name extends keyof Map & ClientEventName>(
  channel: ChannelName | PresenceName | null,
  { events, name, handler }: { events: ClientEvents<Map>; name: Name; handler: ClientEventHandler<Map[Name]> },
): (data: Map[Name]) => boolean {
  const realtime = useRealtime()
  const latest = useRef(handler)
  const joined = useRef<Joined>(undefined)
  useEffect(() => {
    latest.current = handler
  })
  useEffect(() => {
    if (channel === null) return
    const own = isPresence(channel) ? realtime.joinPresence(channel) : realtime.join(channel)
    joined.current = own
    const end = own.onClient(events, name, (data, sender) => latest.current(data, sender))
    return () => {
      joined.current = undefined
      end()
      own.leave()
    }
  }, [realtime, channel, events, name])
  return useCallback((data) => joined.current?.send(events, name, data) ?? false, [events, name])
}

const isPresence = (channel: ChannelName | PresenceName): channel is PresenceName => channel.startsWith('presence-')

/**
 * Calls `handler` when messages of a channel were missed, after an interruption of over two minutes: the displayed data has
 * to be read again. The latest `handler` is called; it needs no memo.
 */
export function useMissed(channel: ChannelName | null, handler: () => void): void {
  useJoined(channel, { handler, follow: (joined, latest) => joined.onMissed(() => latest()) })
}

/** Calls `handler` with each message of an event type on a channel. The latest `handler` is called; it needs no memo. */
export function useEvent<Name extends EventName>(
  channel: ChannelName | null,
  event: Name,
  handler: (message: RealtimeMessage<Name>) => void,
): void {
  useJoined(channel, {
    handler,
    follow: (joined, latest) => joined.on(event, (message) => latest(message)),
    key: event,
  })
}

/** How a component follows a channel. */
interface Following<Handler> {
  handler: Handler
  /** Returns the function that ends it. Called again when the channel or `key` changes. */
  follow: (joined: JoinedChannel, latest: Handler) => () => void
  key?: string
}

/** Joins a channel for as long as the component is there, and follows it with the latest handler. */
function useJoined<Handler extends (...given: never[]) => void>(
  channel: ChannelName | null,
  { handler, follow, key }: Following<Handler>,
): void {
  const realtime = useRealtime()
  const latest = useRef({ handler, follow })
  useEffect(() => {
    latest.current = { handler, follow }
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for what `follow` reads
  useEffect(() => {
    if (channel === null) return
    const joined = realtime.join(channel)
    const callLatest = ((...given: never[]) => latest.current.handler(...given)) as Handler
    const end = latest.current.follow(joined, callLatest)
    return () => {
      end()
      joined.leave()
    }
  }, [realtime, channel, key])
}

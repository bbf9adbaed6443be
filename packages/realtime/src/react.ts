import { createContext, createElement, type ReactNode, useContext, useEffect, useRef, useState } from 'react'
import type { ChannelName, ChannelState, EventName, RealtimeMessage } from './channel.ts'
import type { JoinedChannel, Realtime } from './realtime.ts'

const RealtimeContext = createContext<Realtime | undefined>(undefined)

/** Gives the components below the connection that `createRealtime` made. */
export function RealtimeProvider({ realtime, children }: { realtime: Realtime; children?: ReactNode }) {
  return createElement(RealtimeContext.Provider, { value: realtime }, children)
}

const CONNECTING: ChannelState = { kind: 'connecting' }

function useRealtime(): Realtime {
  const realtime = useContext(RealtimeContext)
  if (!realtime) throw new Error('useChannel and useEvent need a RealtimeProvider above them')
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

/**
 * Calls `handler` when messages of a channel were missed, after an interruption of over two minutes: the displayed data has
 * to be read again. The latest `handler` is called; it needs no memo.
 */
export function useMissed(channel: ChannelName | null, handler: () => void): void {
  useJoined(channel, handler, (joined, latest) => joined.onMissed(() => latest()))
}

/** Calls `handler` with each message of an event type on a channel. The latest `handler` is called; it needs no memo. */
export function useEvent<Name extends EventName>(
  channel: ChannelName | null,
  event: Name,
  handler: (message: RealtimeMessage<Name>) => void,
): void {
  useJoined(channel, handler, (joined, latest) => joined.on(event, (message) => latest(message)), event)
}

/**
 * Joins a channel for as long as the component is there, and follows it with the latest handler. `follow` returns what ends
 * this; it is called again when the channel or `key` changes.
 */
function useJoined<Handler extends (...given: never[]) => void>(
  channel: ChannelName | null,
  handler: Handler,
  follow: (joined: JoinedChannel, latest: Handler) => () => void,
  key?: string,
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

import { createContext, createElement, type ReactNode, useContext, useEffect, useRef, useState } from 'react'
import type { ChannelName, ChannelState, EventName, RealtimeMessage } from './channel.ts'
import type { Realtime } from './realtime.ts'

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

/** Calls `handler` with each message of an event type on a channel. The latest `handler` is called; it needs no memo. */
export function useEvent<Name extends EventName>(
  channel: ChannelName | null,
  event: Name,
  handler: (message: RealtimeMessage<Name>) => void,
): void {
  const realtime = useRealtime()
  const latest = useRef(handler)
  useEffect(() => {
    latest.current = handler
  })
  useEffect(() => {
    if (channel === null) return
    const joined = realtime.join(channel)
    const end = joined.on(event, (message) => latest.current(message))
    return () => {
      end()
      joined.leave()
    }
  }, [realtime, channel, event])
}

import { isProblem, ProblemError, type Schemas } from '@signalbox/client'
import type { Channel, default as PusherClass } from 'pusher-js'
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'
import { api } from '../../frame/api.ts'
import { addLine, type Line } from './lines.ts'

/** A subscription, with the answer to the request that authorizes it. */
export interface Subscription {
  channel: string
  state: 'asking' | 'joined' | 'refused'
  socketId: string | null
  latencyMs: number | null
  /** Why it was refused: the code and the sentence of the API. */
  refusal: { code: string; detail: string; permission: string | null; requestId: string | null } | null
}

/** Text of a failed authorization. Pure. */
function describeRefusal(error: unknown): NonNullable<Subscription['refusal']> {
  if (!(error instanceof ProblemError))
    return { code: 'no_answer', detail: String(error), permission: null, requestId: null }
  const permission = isProblem(error, 'permission_denied') ? (error.problem.missing?.permission ?? null) : null
  return { code: error.code, detail: error.problem.detail, permission, requestId: error.requestId }
}

/** Loads the client library, and connects it as the service says; `authorize` answers for private channels. */
async function connect(
  { key, cluster, ws_host: host, ws_port: port, ws_path: path, force_tls: forceTLS }: Schemas['RealtimeConfig'],
  authorize: (socketId: string, channel: string) => Promise<{ auth: string }>,
): Promise<PusherClass> {
  const { default: Pusher } = await import('pusher-js')
  return new Pusher(key, {
    cluster,
    forceTLS,
    wsHost: host,
    wsPort: port,
    wssPort: port,
    ...(path !== '' && { wsPath: path }),
    // Without these the library tries a third party as well, which the policy of the page refuses.
    enabledTransports: ['ws', 'wss'],
    disableStats: true,
    channelAuthorization: {
      transport: 'ajax',
      endpoint: '',
      customHandler: ({ socketId, channelName }, answer) => {
        authorize(socketId, channelName).then(
          (data) => answer(null, data),
          (error: unknown) => answer(error instanceof Error ? error : new Error(String(error)), null),
        )
      },
    },
  })
}

/** The lines of the message table, and the way to add one. */
function useLines() {
  const [lines, setLines] = useState<Line[]>([])
  const nextId = useRef(0)
  const record = useCallback(
    (direction: Line['direction'], where: { channel: string; event: string }, data: unknown) => {
      const bytes = new TextEncoder().encode(JSON.stringify(data ?? null)).length
      const at = new Date().toISOString()
      nextId.current += 1
      const id = nextId.current
      setLines((all) => addLine(all, { id, at, direction, ...where, bytes, data }))
    },
    [],
  )

  return { lines, record, clear: () => setLines([]) }
}

/** The subscriptions, one for each channel. */
function useSubscriptions() {
  const [subscriptions, setSubscriptions] = useState<Subscription[]>([])
  const change = useCallback((channel: string, members: Partial<Subscription>) => {
    setSubscriptions((all) => all.map((item) => (item.channel === channel ? { ...item, ...members } : item)))
  }, [])

  const remove = useCallback(
    (channel: string) => setSubscriptions((all) => all.filter((item) => item.channel !== channel)),
    [],
  )
  const add = useCallback(
    (added: Subscription) =>
      setSubscriptions((all) => [...all.filter((item) => item.channel !== added.channel), added]),
    [],
  )
  return { subscriptions, add, change, remove }
}

/** Closes the connection with the screen, also one that is still opening. */
function useEnd(opening: RefObject<Promise<PusherClass> | undefined>, isGone: RefObject<boolean>): void {
  useEffect(() => {
    isGone.current = false
    return () => {
      isGone.current = true
      void opening.current?.then((library) => library.disconnect()).catch(() => {})
      opening.current = undefined
    }
  }, [opening, isGone])
}

/** The connection of the inspector: it opens with the first subscription, and closes with the screen. */
export function useInspector() {
  const [state, setState] = useState('initialized')
  const { subscriptions, add, change, remove } = useSubscriptions()
  const { lines, record, clear } = useLines()
  const [fault, setFault] = useState<unknown>()
  const opening = useRef<Promise<PusherClass>>(undefined)
  const isGone = useRef(false)

  const authorize = useCallback(
    async (socketId: string, channel: string) => {
      const startedMs = performance.now()
      const took = () => Math.round(performance.now() - startedMs)
      const body = { socket_id: socketId, channel_name: channel }
      record('out', { channel, event: 'authorization' }, body)
      try {
        const answer = await api.realtime.realtimeAuth({ body })
        change(channel, { socketId, latencyMs: took() })
        return answer
      } catch (error) {
        change(channel, { socketId, latencyMs: took(), state: 'refused', refusal: describeRefusal(error) })
        throw error
      }
    },
    [change, record],
  )

  const open = useCallback(() => {
    opening.current ??= (async () => {
      const { data } = await api.realtime.realtimeConfig({})
      const library = await connect(data, authorize)
      if (isGone.current) library.disconnect()
      followConnection(library, (event, data) => {
        if (data === null) setState(event)
        record('connection', { channel: '', event }, data)
      })
      return library
    })()
    return opening.current
  }, [authorize, record])

  const subscribe = useCallback(
    async (channel: string) => {
      setFault(undefined)
      add({ channel, state: 'asking', socketId: null, latencyMs: null, refusal: null })
      try {
        const library = await open()
        library.unsubscribe(channel)
        follow(library.subscribe(channel), { record, onJoined: () => change(channel, { state: 'joined' }) })
      } catch (error) {
        opening.current = undefined
        remove(channel)
        setFault(error)
      }
    },
    [open, record, change, add, remove],
  )

  const leave = useCallback(
    async (channel: string) => {
      remove(channel)
      const library = await opening.current
      library?.unsubscribe(channel)
    },
    [remove],
  )

  useEnd(opening, isGone)

  return { state, subscriptions, lines, fault, subscribe, leave, clear }
}

/** Reports states of the connection, which have no data, and its errors. */
function followConnection({ connection }: PusherClass, report: (event: string, data: unknown) => void): void {
  connection.bind('state_change', ({ current }: { current: string }) => report(current, null))
  connection.bind('error', (error: unknown) => report('error', error ?? {}))
}

function follow(
  channel: Channel,
  {
    record,
    onJoined,
  }: {
    record: (direction: 'in', where: { channel: string; event: string }, data: unknown) => void
    onJoined: () => void
  },
): void {
  channel.bind('pusher:subscription_succeeded', onJoined)
  channel.bind_global((event: string, data: unknown) => record('in', { channel: channel.name, event }, data))
}
